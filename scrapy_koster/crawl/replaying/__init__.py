"""Crawls and pages that robots.txt meets at another point than the download."""
