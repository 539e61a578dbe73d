"""The robots.txt files of a crawl in WARC files.

``record`` has the values, ``warc`` packs and reads records, ``index`` finds records, ``writer`` has
the open file, ``evidence`` turns results of a crawl into records, and ``folder`` reads the files.
``history`` compares versions.
"""
