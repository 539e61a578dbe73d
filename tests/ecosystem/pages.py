"""A spider of scrapy-poet, and its page object."""

from typing import Any

from harness.crawling import RecordingSpider
from scrapy.http import Response
from web_poet import WebPage


class TitlePage(WebPage):  # type: ignore[misc]
    @property
    def title(self) -> str | None:
        return self.css("title::text").get()  # type: ignore[no-any-return]


class WithPages(RecordingSpider):
    def parse(self, response: Response, page: TitlePage) -> Any:  # type: ignore[override]
        self.fetched.append(response.url)
        return {"title": page.title}
