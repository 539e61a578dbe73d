"""What is known of each site, and the requests that wait for it."""
