"""The signals of a crawl. Connect to them as to Scrapy's: ``crawler.signals.connect(f, signal)``.

A handler gets named arguments, and need not accept every argument. The crawl waits for handlers, so
they should be short. Their results are ignored and their errors logged: a handler cannot change
a decision. Signals without a handler are not sent.

*site* is a ``Site``; ``str(site)`` is its scheme, host and port, such as ``https://example.com``.
"""

robots_requested = object()
"""A robots.txt is about to be requested: *site*."""

robots_retrieved = object()
"""A site has answered or failed, or its copy was in the storage: *site*, *known* (a ``Copy`` or a
``Failure``), *how* (a ``Retrieval``), *result* (an ``Answer`` or ``NoAnswer``; None from the
storage).
"""

robots_read = object()
"""A file has been read: *site*, *copy*, *record* (the record for the robot, or None),
*statements* (about the use of the site's pages).
"""

site_status_changed = object()
"""The status of *site* is known: *status*, a ``Standing``. *previous* is the last status, None at
first. Both may be the same.
"""

site_deferred = object()
"""Visits to *site* are deferred from now on."""

site_given_up = object()
"""The waiting requests of *site* are refused."""

request_allowed = object()
"""*request* may be fetched: *site*, *status* (a ``Standing`` or None), *known*, *robot*, *verdict*.
If an entry of KOSTER_OVERRIDES allows the request, *verdict* has this ``override``. Otherwise
*verdict* is None.
"""

request_refused = object()
"""*request* is refused, or would be without KOSTER_DRY_RUN: *verdict*."""

request_exempt = object()
"""*request* has ``dont_obey_robotstxt``: *site*, *verdict* (None if the robots.txt is not known).
"""

standards_conflict = object()
"""*request* is allowed by the draft and forbidden by RFC 9309: *site*, *conflict*."""

output_dropped = object()
"""*output*, a request or an item from *response*, is dropped, or would be without KOSTER_DRY_RUN.
*reason* is ``nofollow``, ``noindex`` or ``usage_dropped``.
"""
