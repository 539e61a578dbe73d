"""The robots of section 4, one for pages with directives, and one for any site."""
