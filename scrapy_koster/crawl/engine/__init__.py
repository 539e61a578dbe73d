"""Whatever of Scrapy is not public, and what its releases differ in."""
