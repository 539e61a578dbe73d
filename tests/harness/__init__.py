"""What the tests are made of: the server, the crawls, the tables, the oracles."""
