"""The audit: what robots did on a site, by its server's log, held against its robots.txt."""
