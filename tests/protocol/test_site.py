"""3.1: what one /robots.txt speaks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.site import Site, site_of

LONG = "\u00fc" * 64
"""A host without a form in ASCII."""


@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        pytest.param(
            "http://www.foo.com/welcome.html", "http://www.foo.com/robots.txt", id="example"
        ),
        pytest.param("http://h:80/", "http://h/robots.txt", id="default-port"),
        pytest.param("HTTP://WWW.Foo.COM/", "http://www.foo.com/robots.txt", id="case"),
        pytest.param("http://[2001:DB8::1]:8001/", "http://[2001:db8::1]:8001/robots.txt", id="v6"),
        pytest.param(
            "http://B\u00fccher.example/", "http://xn--bcher-kva.example/robots.txt", id="idna"
        ),
        pytest.param(f"http://{LONG}/", f"http://{LONG}/robots.txt", id="no-idna"),
    ],
)
def test_robots_url(url: str, robots_url: str) -> None:
    site = site_of(url)
    assert site is not None
    assert site.robots_url == robots_url
    assert f"{site}/robots.txt" == robots_url
    assert site_of(robots_url) == site


@pytest.mark.parametrize("url", ["ftp://h/a", ""])
def test_robots_txt_is_not_for_other_schemes(url: str) -> None:
    assert site_of(url) is None


@pytest.mark.parametrize(
    "url",
    ["http:///\x1b", "https://:80/", "http://[::\x1b/", f"http://h:{'x' * 100_000}/"],
    ids=len,
)
def test_a_url_that_names_no_site(url: str) -> None:
    with pytest.raises(ValueError, match="no site in the URL") as caught:
        site_of(url)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@given(text=st.text(), make=st.sampled_from(["{}", "http://{}", "https://h:{}"]))
def test_any_text_has_a_site_or_none_or_is_refused(text: str, make: str) -> None:
    try:
        site = site_of(make.format(text))
    except ValueError:
        return
    assert site is None or site_of(site.robots_url) == site


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("a.example", True),
        ("A.EXAMPLE:80", True),
        ("a.example:x", False),
        ("b.example", False),
        ("a.example/b", True),
    ],
)
def test_the_value_of_a_host_header(host: str, is_it: bool) -> None:
    assert Site("http", "a.example", 80).is_named_by(host) is is_it
