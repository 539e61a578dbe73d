"""Real crawls beside what else is in people's projects: `make test-ecosystem`.

Each test has the mark `beside`: the package it is about, and which part of it. Its docstring is a
row of docs/ecosystem.md, which a run with `--write-page` writes anew, with the versions that ran.
"""
