"""The report of a crawl: a file of counts, and the numbers and the page that are made of it."""
