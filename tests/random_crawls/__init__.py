"""Random crawls in real processes, and an oracle that computes from the plan alone: README.md."""
