"""The log lines of a crawl."""
