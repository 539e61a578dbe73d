"""The signals of a crawl. Connect to them as to Scrapy's: ``crawler.signals.connect(f, signal)``.

A handler gets named arguments and may leave out those that it does not need. It is called at once,
so it should be short. What it returns is ignored, and an error in it is logged: a handler cannot
change a decision. Nothing is sent while nobody has connected.

*site* is a ``Site``; ``str(site)`` is its scheme, host and port, such as ``https://example.com``.
"""

robots_requested = object()
"""A robots.txt is about to be requested: *site*."""

robots_retrieved = object()
"""A site has answered or failed, or its copy was in the storage: *site*, *known* (a ``Copy`` or a
``Failure``), *how* (a ``Retrieval``), *result* (the answer; None if nothing was requested).
"""

robots_read = object()
"""A file has been read: *site*, *copy*, *record* (the record that the robot obeys, or None),
*statements* (of the use of the site's pages).
"""

site_status_changed = object()
"""*site* has another *status* than *previous*, each a ``Standing``; *previous* may be None."""

site_deferred = object()
"""Visits to *site* are deferred from now on."""

site_given_up = object()
"""The requests that waited for *site* are refused."""

request_allowed = object()
"""*request* may be fetched: *site*, *status* (a ``Standing`` or None), *known*, *robot*, *verdict*
(None for most requests, for which no reason is looked up). With ``verdict.override`` an entry of
KOSTER_OVERRIDES allows it.
"""

request_refused = object()
"""*request* is refused, or would be without KOSTER_DRY_RUN: *verdict*."""

request_exempt = object()
"""*request* has ``dont_obey_robotstxt``: *site*, *verdict* (None if the robots.txt is not known).
"""

standards_conflict = object()
"""*request* is allowed by the draft, and RFC 9309 forbids it: *site*, *conflict*."""

output_dropped = object()
"""A request or an item from *response* is dropped because of *reason*: ``nofollow``, ``noindex`` or
``usage_dropped``.
"""
