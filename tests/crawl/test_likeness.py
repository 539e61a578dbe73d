"""Requests that would not come back from the file as they went stay in memory."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.spiders import Spider

from scrapy_koster.crawl.parking.parking import Parking

URL = "http://a.example/1"


class Attributed(Request):
    """Sets an attribute when it is built, so that each copy has one too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.attempt: Any = 0


class Slotted(Request):
    __slots__ = ("attempt",)


class SlottedOnce(Request):
    __slots__ = "attempt"  # noqa: PLC0205  # Python allows it


class SlottedInPrivate(Request):
    __slots__ = ("__attempt",)

    def put(self, value: object) -> None:
        self.__attempt = value


class Named(Request):
    """Tells Scrapy of its attribute, which comes back then."""

    attributes = (*Request.attributes, "attempt")

    def __init__(self, *args: Any, attempt: Any = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.attempt = attempt


class Changing(Request):
    """Is not built twice alike."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.priority += 1


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = object.__hash__


def having(kind: type[Request], value: object) -> Request:
    request: Any = kind(URL)
    request.attempt = value
    return request  # type: ignore[no-any-return]


def in_private(value: object) -> Request:
    request = SlottedInPrivate(URL)
    request.put(value)
    return request


def is_written(request: Request) -> bool:
    crawler = Crawler(Spider)
    crawler.spider = Spider("waiting")
    parking = Parking(crawler, in_memory=0)
    parking.push("a", request)
    is_written = parking._held_count == 0
    parking.open("a")
    back = parking.pop()
    parking.close()
    assert back is not None
    assert is_written != (back is request)
    return is_written


@pytest.mark.parametrize(
    "request_",
    [
        having(Attributed, 3),
        having(Attributed, False),
        having(Attributed, []),
        having(Slotted, 3),
        having(SlottedOnce, 3),
        in_private(3),
        having(Named, [3]),
        having(Named, Unequal()),
        Changing(URL),
        Request(URL, flags=[Unequal()]),  # type: ignore[list-item]
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_would_not_come_back_equal_stays_in_memory(request_: Request) -> None:
    assert not is_written(request_)


@pytest.mark.parametrize(
    "request_",
    [
        Attributed(URL),
        Slotted(URL),
        SlottedInPrivate(URL),
        Named(URL, attempt=(3, "a")),
        JsonRequest(URL, data={"a": 1}, dumps_kwargs={"indent": 1}),
        FormRequest(URL, formdata={"a": "b"}),
        XmlRpcRequest(URL, methodname="a", params=(1,)),
        Request(URL, cookies={"a": "b"}, flags=["c"], headers={"D": "e"}, meta={"f": 1}),
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_comes_back_equal_is_written(request_: Request) -> None:
    assert is_written(request_)
