"""Statements about pages, in META tags and in robots.txt."""
