"""What a crawl says and counts: log lines, stats, the counts of the report."""
