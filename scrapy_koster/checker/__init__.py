"""The checker: mistakes in a robots.txt, and lines that the two standards read differently."""
