"""The parsers for KOSTER_PARSER, or for Scrapy's ROBOTSTXT_PARSER."""
