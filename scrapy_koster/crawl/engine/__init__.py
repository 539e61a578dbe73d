"""Undocumented parts of Scrapy, and the differences of its releases."""
