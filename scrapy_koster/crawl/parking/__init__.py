"""Requests that wait in the scheduler: in memory, in a file, and in the Redis of a fleet."""
