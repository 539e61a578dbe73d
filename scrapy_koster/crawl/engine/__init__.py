"""Undocumented parts of Scrapy, and the differences between releases of Scrapy."""
