"""Where requests wait for their site to open: in memory, and past a bound in a file."""
