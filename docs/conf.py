"""The site of these pages: make docs."""

from importlib import metadata

project = "scrapy-koster"
release = metadata.version(project)
extensions = ["myst_parser", "sphinx_scrapy"]
html_theme = "sphinx_rtd_theme"
html_title = f"{project} {release}"
myst_heading_anchors = 4  # as on GitHub: settings.md#koster_parser
# The pages link to no names of other projects, and are built without a network.
scrapy_intersphinx_disable = ["python", "scrapy", "twistedapi"]
