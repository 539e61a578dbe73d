"""Where a robots.txt leaves the draft, or is read in two ways."""
