"""Seeds that are run again."""

CHOSEN = (10, 146, 174, 214, 348, 357, 368, 416, 460, 659)
"""Run by `make test`: quick crawls of the shapes mixed (a full disk, a CrawlSpider, sitemaps, no
reactor), outage (a proxy that dies), resume (kill -9 and a JOBDIR), closing (SIGINT), room, and
fleet (three processes on one queue).
"""

BROKE = {
    5: "an outage of the proxy was stored, and the next run fetched nothing",
    6: "a JOBDIR crawl with a dead site never finished",
    13: "a URL that a later middleware had replaced was sent without a robots.txt",
    16: "pictures on a failing host stopped the crawl",
    30: "sites were counted twice after an eviction",
    54: "gaps in a fleet were short while an event loop was blocked",
    62: "gaps in a fleet were short while an event loop was blocked",
    84: "a robots.txt was fetched after Ctrl-C",
    81: "more sites than the memory has room for: the crawl never ended",
    20261128189: "answers that had arrived counted as time-outs: large files blocked the loop",
}
"""Seeds that broke, and why: run with those of the day. They are of the draws of plan.py today."""
