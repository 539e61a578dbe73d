"""How a robots.txt is retrieved: from the storage, or from the site."""
