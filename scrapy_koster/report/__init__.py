"""The report of a crawl: a file of counts, and with its numbers and its page."""
