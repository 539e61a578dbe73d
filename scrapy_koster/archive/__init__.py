"""What was known when: each robots.txt that a crawl went by, in WARC files.

``record`` is the format, ``index`` finds records, ``writer`` keeps a growing file, ``evidence``
turns what a crawl has learnt into records, and ``folder`` reads it back. ``history`` compares.
"""
