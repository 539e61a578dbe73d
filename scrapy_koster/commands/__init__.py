"""The commands of ``scrapy robots``."""
