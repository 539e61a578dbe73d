"""Count the forbidden pages that a crawl fetches while 40 requests wait for a slow robots.txt.

    python example_project/forbidden_pages.py

Each crawl runs in a process of its own: first with Scrapy's own middleware, then with the add-on.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = 40
SECS = 0.5
ROBOTS = b"User-agent: *\nDisallow: /\n"
CRAWL = """
import sys
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

class ForbiddenSpider(Spider):
    name = "forbidden"

    async def start(self):
        for n in range({requests}):
            yield Request(f"{{sys.argv[1]}}/{{n}}")

settings = {{"ROBOTSTXT_OBEY": True, "LOG_ENABLED": False}}
if sys.argv[2]:
    settings["ADDONS"] = {{sys.argv[2]: 500}}
    settings["KOSTER_STORAGE"] = "scrapy_koster.storage.memory.MemoryStorage"
process = CrawlerProcess(settings)
process.crawl(ForbiddenSpider)
process.start()
"""


def fetched(addon: str) -> int:
    """Return how many forbidden pages a crawl fetches, with the add-on *addon* or without one."""
    pages: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_robots = self.path == "/robots.txt"
            if is_robots:
                time.sleep(SECS)
            else:
                pages.append(self.path)
            body = ROBOTS if is_robots else b"a page"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    crawl = CRAWL.format(requests=REQUESTS)
    subprocess.run([sys.executable, "-c", crawl, url, addon], check=True, timeout=120)
    server.shutdown()
    server.server_close()
    return len(pages)


if __name__ == "__main__":
    import scrapy

    print(f"{REQUESTS} requests for forbidden pages. Fetched with Scrapy {scrapy.__version__}:")
    print(f"  its own middleware: {fetched('')}")
    print(f"  scrapy-koster:      {fetched('scrapy_koster.Addon')}")
