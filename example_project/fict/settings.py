"""The settings of the project. The one line for robots.txt is ADDONS."""

BOT_NAME = "fict"

SPIDER_MODULES = ["fict.spiders"]
NEWSPIDER_MODULE = "fict.spiders"

ADDONS = {"scrapy_koster.Addon": 500}

# Sites know the robot by the first word of this: "fictexample".
USER_AGENT = "FictExample/0.1 (+https://example.com/robot)"

CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1

EXTENSIONS = {"fict.server.FictOrg": 500}

# A file that the site of the project serves in place of its own /robots.txt.
FICT_ROBOTS_TXT = None

# A file to which the site of the project adds a line for each request, for scrapy robots audit.
FICT_LOG = None

TELNETCONSOLE_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
