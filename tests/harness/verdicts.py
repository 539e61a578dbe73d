"""The verdict on a URL, as a crawl makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scrapy_koster.protocol.override import Override
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Settled
from scrapy_koster.protocol.verdict import (
    Source,
    Verdict,
    forbidden_spelling,
    permission,
    verdict_on,
)

SITE = Site("http", "www.fict.org", 80)
POLICY = Policy()


def judged(
    path: str,
    step: Settled,
    parser: Any,
    policy: Policy = POLICY,
    *,
    site: Site = SITE,
    overrides: Sequence[Override] = (),
    **options: Any,
) -> Verdict:
    url, robot = f"{site}{path}", "Fig/0.1"
    allows = permission(step, parser, policy, overrides)
    return verdict_on(
        url,
        robot,
        site=site,
        step=step,
        parser=parser,
        source=Source.STORAGE,
        policy=policy,
        forbidden=forbidden_spelling(url, robot, allows),
        overrides=overrides,
        **options,
    )
