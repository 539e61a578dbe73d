"""The report of a crawl: a file of counts, and the numbers and the page made from it."""
