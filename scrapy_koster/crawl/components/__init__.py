"""The classes that Scrapy builds by name: middlewares, the scheduler, a mixin for spiders."""
