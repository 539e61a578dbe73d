"""What a page states about itself, and what its robots.txt stated about it."""
