"""The robots exclusion protocol: texts in, values out. No I/O, no clock, no Scrapy."""
