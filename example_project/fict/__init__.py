"""A Scrapy project that brings the site of section 4 of the draft with it."""
