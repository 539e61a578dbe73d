"""The parsers that Scrapy, or KOSTER_PARSER, is given."""
