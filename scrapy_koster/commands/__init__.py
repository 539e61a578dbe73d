"""``scrapy robots``: what a robots.txt says, and what is known of sites."""
