"""The audit: the requests of robots in a server's log, compared with the robots.txt of the site."""
