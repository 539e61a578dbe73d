"""What lives in a crawl."""
