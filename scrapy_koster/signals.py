"""The signals of a crawl. Connect to them as to Scrapy's: ``crawler.signals.connect(f, signal)``.

A handler gets named arguments, and need not accept every argument. The crawl waits for handlers, so
a handler should be fast. Results of handlers are ignored, and errors are logged: a handler cannot
change a decision. Signals without a handler are not sent.

The description of a signal has the names of the arguments in asterisks. *site* is a ``Site``;
``str(site)`` is its scheme, host and port, such as ``https://example.com``.
"""

robots_requested = object()
"""A robots.txt is about to be requested: *site*."""

robots_retrieved = object()
"""A robots.txt was fetched or found in the storage, or could not be retrieved: *site*, *known* (a
``CachedRobots`` or a ``FetchFailure``), *how* (a ``Retrieval``), *result* (an ``Answer`` or a
``NoAnswer``; None if *known* comes from the storage).
"""

robots_read = object()
"""A robots.txt has been read: *site*, *copy*, *record* (the record for the robot, or None),
*statements* (the usage statements for the robot).
"""

site_status_changed = object()
"""The status of *site* is known, for the first time or again: *status*, a ``SiteStatus``.

*previous* is the status before, or None for the first time. Both may be the same.
"""

site_deferred = object()
"""Requests to *site* wait from now on, until a retry of its robots.txt."""

site_given_up = object()
"""The waiting requests of *site* are refused."""

request_allowed = object()
"""*request* may be fetched: *site*, *status* (a ``SiteStatus`` or None), *known* (a
``CachedRobots``, a ``FetchFailure`` or None), *robot* (the robot's name), *verdict*. If an entry of
KOSTER_OVERRIDES allows the request, *verdict* is a ``Verdict`` with this ``override``. If not,
*verdict* is None.
"""

request_refused = object()
"""*request* is refused, or would be refused without KOSTER_DRY_RUN: *verdict*, with the reason."""

request_exempt = object()
"""*request* has ``dont_obey_robotstxt``: *site*, *verdict* (None if no valid robots.txt is in
memory).
"""

standards_conflict = object()
"""*request* is allowed, but RFC 9309 or a hidden line forbids its URL: *site*, *conflict* (a
``Hazard``).
"""

output_dropped = object()
"""*output*, a request or an item from *response*, is dropped, or would be dropped without
KOSTER_DRY_RUN. *reason* is ``nofollow``, ``noindex`` or ``usage_dropped``.
"""
