"""Requests that wait in the scheduler: in memory, in a file, and beside the queue of a fleet."""
