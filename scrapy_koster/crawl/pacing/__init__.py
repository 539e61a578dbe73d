"""Crawl-delay: visits to a host that are far enough apart."""
