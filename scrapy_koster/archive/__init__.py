"""Each robots.txt that a crawl used, in WARC files, and the way back.

``record`` has the values, ``warc`` packs and reads records, ``index`` finds them, ``writer`` keeps
a growing file, ``evidence`` turns results of a crawl into records, and ``folder`` reads them back.
``history`` compares versions.
"""
