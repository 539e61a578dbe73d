"""The contract of a storage, as checks that you can run over yours with any test runner.

    CHECKS = contract.checks(MyStorage)

    @pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
    def test_my_storage(check, tmp_path):
        check(lambda: MyStorage(tmp_path / "robots"))

A check fails with AssertionError. It opens two storages at one place that is empty, as two
processes do, uses both, and closes them. A storage that processes cannot share, such as one in
memory, gives the same object twice.
"""

from __future__ import annotations

from scrapy_koster.storage.contract import batches, claims, copies, pipelines, visits
from scrapy_koster.storage.contract.check import Check
from scrapy_koster.storage.port import Batching, Claiming, Pacing, Pipelining

__all__ = ["checks"]


def checks(storage: type[object]) -> dict[str, Check]:
    """Return the checks for the class *storage*, by name.

    They are those of ``Storage``, and of ``Claiming``, ``Pacing``, ``Batching`` and ``Pipelining``
    if it has their methods.
    """
    found = dict(copies.CHECKS)
    if issubclass(storage, Claiming):
        found |= claims.CHECKS
    if issubclass(storage, Pacing):
        found |= visits.CHECKS
    if issubclass(storage, Batching):
        found |= batches.CHECKS
    if issubclass(storage, Pipelining):
        found |= pipelines.checks(storage)
    return found
