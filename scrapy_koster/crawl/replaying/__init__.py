"""Crawls from the HTTP cache."""
