"""The robots exclusion protocol of Martijn Koster's 1996 draft, for Scrapy."""
