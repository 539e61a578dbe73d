"""Crawls in virtual time: one seed is one history. See README.md in this folder."""
