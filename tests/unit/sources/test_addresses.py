"""What a URL names, and which addresses may be contacted."""

from __future__ import annotations

import ipaddress
import string
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vouchgate.ingest.net.addresses import (
    Opening,
    Target,
    embedded_address,
    follow,
    load_rules,
    parse_opening,
    parse_url,
)
from vouchgate.ingest.net.fetched import HopFailure

RULES = load_rules()


def place(url: str) -> Target:
    found = parse_url(url)
    assert isinstance(found, Target), found
    return found


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://pages.test", "http://pages.test/"),
        ("HTTPS://Pages.Test:443/A?b#c", "https://pages.test/A?b"),
        ("http://pages.test:8080", "http://pages.test:8080/"),
        ("http://pages.test?to=/a", "http://pages.test/?to=/a"),
        ("http://pages.test./a", "http://pages.test/a"),
        ("https://pages.test/a@b?c@d#e@f", "https://pages.test/a@b?c@d"),
        ("https://pages.test/a%2Fb%zz", "https://pages.test/a%2Fb%zz"),
        ("https://pages.test/größe?ß=€", "https://pages.test/gr%C3%B6%C3%9Fe?%C3%9F=%E2%82%AC"),
        ('https://pages.test/<a>"`{|}^', "https://pages.test/%3Ca%3E%22%60%7B%7C%7D%5E"),
        ("https://under_score.pages.test/", "https://under_score.pages.test/"),
        ("https://bücher.test/", "https://xn--bcher-kva.test/"),
        ("https://BÜCHER.test/", "https://xn--bcher-kva.test/"),
        ("https://bu\u0308cher.test/", "https://xn--bcher-kva.test/"),
        ("https://xn--bcher-kva.test/", "https://xn--bcher-kva.test/"),
        ("https://中文.test/", "https://xn--fiq228c.test/"),
        ("http://9.9.9.9/", "http://9.9.9.9/"),
        ("http://9.9.9.9.pages.test/", "http://9.9.9.9.pages.test/"),
        ("http://[2A00:1450:0:0::68]:8443/", "http://[2a00:1450::68]:8443/"),
    ],
)
def test_plain_urls_are_read(url: str, asked: str) -> None:
    assert place(url).url == asked
    assert parse_url(asked) == place(url), "a URL as it is asked for reads the same"


UNCLEAR = {
    "other schemes": [
        "gopher://pages.test/",
        "ws://pages.test",
        "about:blank",
        "httpx://a.test",
        "mailto:a@b.test",
    ],
    "no scheme": ["", "pages.test", "//pages.test/", "://pages.test", "http", "/a"],
    "no host": [
        "http://",
        "http:///a",
        "http://?a",
        "http://#a",
        "http://:80/",
        "https:////pages.test",
        "http://./",
    ],
    "no slashes": ["http:pages.test", "http:/pages.test", "https:/a/b"],
    "user names": [
        "http://me@pages.test/",
        "http://@pages.test/",
        "http://a:b@pages.test",
        "http://pages.test#@other.test/",
        "http://pages.test?@other.test/",
        "http://a@b@pages.test/",
    ],
    "back slashes": [
        "http:\\\\pages.test",
        "http://pages.test\\a",
        "http://a.test\\@b.test/",
        "http://a.test/b\\c",
    ],
    "white space and controls": [
        " http://pages.test/",
        "http://pages.test/ ",
        "http://pages.test/\n",
        "http://pa\tges.test/",
        "ht\ntp://pages.test/",
        "http://pages.test/\x00",
        "http://pages.test/a\x85",
        "http://pages.test/\u2028",
        "http://pages\u3000.test/",
        "http://pages.test/\x7f",
    ],
    "half a character": ["http://pages.test/\ud800", "http://\udc00.test/"],
    "percent signs in the host": [
        "http://pages%2etest/",
        "http://%70ages.test/",
        "http://pages.test%00.a.test/",
    ],
    "full-width, enclosed, ignored or double-sized": [
        "http://ｐages.test/",
        "http://１27.0.0.1/",
        "http://pages．test/",
        "http://pages。test/",
        "http://ⓟages.test/",
        "http://pa\u00adges.test/",
        "http://pa\u200bges.test/",
        "http://pa\u200dges.test/",
        "http://pages\u2024test/",
        "http://\u212aages.test/",
        "http://ﬁles.test/",
        "http://gruß.test/",
        "http://℀.test/",
        "http://pages.test\uff0fa/",
        "http://⑨.9.9.9/",
        "http://İ.test/",
        "http://pages\ufe0f.test/",
        "http://bü\u00adcher.test/",
        "http://λόγος.test/",
    ],
    "numbers": [
        "http://1/",
        "http://1.2/",
        "http://1.2.3/",
        "http://1.2.3.4.5/",
        "http://1.2.3.256/",
        "http://1.2.3.04/",
        "http://01.2.3.4/",
        "http://1.2.3.4./",
        "http://0x1.2.3.4/",
        "http://0X01020304/",
        "http://1.2.3.0x4/",
        "http://4294967295/",
        "http://1..2.3/",
        "http://1.2.3.0x/",
        "http://pages.9/",
        "http://-1.2.3.4/",
        "http://1.2.3.99999999999999999999/",
    ],
    "ports": [
        "http://pages.test:/",
        "http://pages.test:0/",
        "http://pages.test:080/",
        "http://pages.test:65536/",
        "http://pages.test:+80/",
        "http://pages.test:８０/",
        "http://pages.test:80:80/",
        "http://pages.test:80a/",
        "http://[2a00::1]80/",
    ],
    "brackets": [
        "http://[2a00::1/",
        "http://2a00::1/",
        "http://[2a00::1]]/",
        "http://[pages.test]/",
        "http://[9.9.9.9]/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%1]/",
        "http://[v1.a]/",
        "http://[]/",
        "http://[2a00:::1]/",
        "http://[::ffff:1.2.3.04]/",
        "http://a[2a00::1]/",
    ],
    "no such name": [
        "http://-pages.test/",
        "http://pages-.test/",
        "http://pages..test/",
        "http://.test/",
        "http://pages.test../",
        "http://pa!ges.test/",
        "http://pages.test;a/",
        "http://pages.test,a/",
        "http://pages*.test/",
        f"http://{'a' * 64}.test/",
        f"http://{'a.' * 130}test/",
        "http://xn--a.test/",
        "http://xn--.test/",
        "http://xn--pages-.test/",
        "http://i❤.test/",
    ],
    "too long": ["http://pages.test/" + "a" * 8192, "http://pages.test/" + "€" * 2000],
}


@pytest.mark.parametrize("url", [url for urls in UNCLEAR.values() for url in urls])
def test_unclear_urls_are_refused(url: str) -> None:
    found = parse_url(url)
    assert isinstance(found, HopFailure)
    assert found.code == "refused"
    assert found.as_failure(url, ()).detail.startswith("refused: the ") or "only http" in found.reason


_PIECES = "http https : / // @ \\ ? # [ ] ::1 127.0.0.1 0x7f . localhost pages.test %2e %00 ８０ ① 。 xn-- ß é :80 a"
_URLS = st.one_of(
    st.text(max_size=60),
    st.builds("http://{}".format, st.text(max_size=40)),
    st.lists(st.sampled_from([*_PIECES.split(), "\t", "\n", " ", "\u200d"]), max_size=12).map("".join),
    st.builds("http://{}/{}".format, st.text(string.printable + "①ａé。", max_size=20), st.text(max_size=20)),
)


@given(_URLS)
@example("http://a.test/[")
@example("https://a.test//b/../c")
def test_no_text_raises_and_no_other_parser_reads_another_host(url: str) -> None:
    found = parse_url(url)
    if isinstance(found, HopFailure):
        return
    assert found.url.isascii()
    assert found.target.startswith("/")
    assert parse_url(found.url) == found
    sent = urlsplit(found.url)
    theirs = httpx.URL(found.url)
    assert sent.username is None
    assert sent.hostname == theirs.raw_host.decode() == found.host
    assert (sent.port or {"http": 80, "https": 443}[found.scheme]) == found.port
    if url.isascii() and found.address is None:
        assert (urlsplit(url).hostname or "").removesuffix(".") == found.host, "as it was given, too"


@given(_URLS)
@example("//[")
@example("/..//other.test/a")
@example("?a=//other.test")
@example("\\\\other.test")
def test_no_redirect_raises_and_a_relative_one_stays(location: str) -> None:
    start = place("https://pages.test/a/b?c")
    found = follow(start, location)
    if isinstance(found, HopFailure):
        assert found.code == "refused"
        return
    assert found.scheme == "https"
    if "//" not in location and not location.lower().startswith("https:"):
        assert found.origin == start.origin


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("c", "https://pages.test/a/c"),
        ("../c?d", "https://pages.test/c?d"),
        ("/c", "https://pages.test/c"),
        ("?e", "https://pages.test/a/b?e"),
        ("#e", "https://pages.test/a/b?c"),
        ("//other.test/c", "https://other.test/c"),
        ("https://other.test:8443", "https://other.test:8443/"),
        ("/größe", "https://pages.test/gr%C3%B6%C3%9Fe"),
        ("c:d", None),
        ("http://pages.test/", None),
        ("ftp://pages.test/", None),
        ("//me@other.test", None),
        ("///other.test", None),
        ("/\\other.test", None),
        (" /c", None),
        ("/c\r\nd", None),
    ],
)
def test_redirects(location: str, asked: str | None) -> None:
    found = follow(place("https://pages.test/a/b?c"), location)
    assert (found.url if isinstance(found, Target) else None) == asked


def test_from_http_to_https_is_followed() -> None:
    found = follow(place("http://pages.test/"), "https://pages.test/")
    assert isinstance(found, Target)


# The first and the last address of each range, and the neighbours that are public.
RANGES = {
    "an unspecified address": "0.0.0.0 0.255.255.255 ::",
    "a loopback address": "127.0.0.1 127.255.255.255 ::1",
    "a private address": """10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255
        fc00:: fdff::1 fec0:: feff::1""",
    "a carrier-grade NAT address": "100.64.0.0 100.127.255.255 100.100.100.200",
    "a link-local address": "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 febf::1",
    "a cloud platform address": "168.63.129.16",
    "a special-purpose address": """192.0.0.0 192.0.0.192 192.31.196.1 192.52.193.1 192.175.48.1 2001:1::1
        2001:20::1 2620:4f:8000::1 100::1 5f00::1 5f00:ffff::1""",
    "an IPv4 transition address": "192.88.99.1 2002:909:909::1 ::ffff:9.9.9.9 ::9.9.9.9 64:ff9b:1::909:909",
    "a documentation or benchmark address": """192.0.2.9 198.51.100.9 203.0.113.9 198.18.0.0 198.19.255.255
        2001:db8::1 3fff::1 3fff:fff::1 3ffe::1""",
    "a multicast address": "224.0.0.0 239.255.255.255 ff00:: ff0e::1",
    "a reserved address": "240.0.0.0 255.255.255.255 4000::1 1000::1 fe00::1 64:ff9b:2::1",
    "": """1.0.0.0 9.255.255.255 11.0.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255
        172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
        100.63.255.255 100.128.0.0 168.63.129.15 168.63.129.17 2000::1 2001:200::1 2003::1 2a00:1450::1
        64:ff9b::909:909 3fff:1000::1""",
}


@pytest.mark.parametrize(
    ("address", "kind"), [(one, kind) for kind, ones in RANGES.items() for one in ones.split()]
)
def test_kinds_of_addresses(address: str, kind: str) -> None:
    assert RULES.kind(ipaddress.ip_address(address)) == kind


@pytest.mark.parametrize(
    ("address", "inner"),
    [
        ("::ffff:10.0.0.1", ["10.0.0.1"]),
        ("::10.0.0.1", ["10.0.0.1"]),
        ("2002:a00:1::", ["10.0.0.1"]),
        ("2001:0:a00:1::", ["10.0.0.1", "255.255.255.255"]),
        ("2001:0:909:909::f5ff:fffe", ["9.9.9.9", "10.0.0.1"]),
        ("64:ff9b::a00:1", ["10.0.0.1"]),
        ("64:ff9b:1::a00:1", ["10.0.0.1"]),
        ("2a00:1450::5efe:10.0.0.1", ["10.0.0.1"]),
        ("2a00:1450::200:5efe:10.0.0.1", ["10.0.0.1"]),
    ],
)
def test_an_ipv4_address_inside_an_ipv6_one_is_checked(address: str, inner: list[str]) -> None:
    carrier = ipaddress.ip_address(address)
    assert [str(one) for one in embedded_address(carrier)] == inner
    assert "carries" in RULES.kind(carrier)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public_here(address: ipaddress.IPv4Address) -> None:
    if not RULES.kind(address):
        assert address.is_global
        assert not (address.is_multicast or address.is_reserved) or address in ipaddress.ip_network(
            "64:ff9b::/96"
        )


def test_an_address_of_one_link_is_never_public() -> None:
    assert RULES.kind(ipaddress.ip_address("2a00:1450::1%eth0"))


INSIDE = """wiki localhost LOCALHOST. a.localhost printer.local db.internal metadata.google.internal x.svc
    api.default.svc a.home.arpa localhost.localdomain build.corp router.lan a.onion"""


@pytest.mark.parametrize("host", INSIDE.split())
def test_names_for_inside_a_network(host: str) -> None:
    assert "inside a network" in RULES.doubt(place(f"http://{host}/"))


@pytest.mark.parametrize(
    "host", ["localhost.pages.test", "internal.pages.test", "mylocal.test", "svc.pages.test"]
)
def test_names_that_only_look_like_them(host: str) -> None:
    assert RULES.doubt(place(f"http://{host}/")) == ""


def test_ports() -> None:
    assert all(not RULES.doubt(place(f"http://pages.test:{port}/")) for port in (80, 443, 8080, 8443))
    assert "port 8000 is not one of" in RULES.doubt(place("http://pages.test:8000/"))
    assert not load_rules((), frozenset({8000})).doubt(place("http://pages.test:8000/"))


def test_what_is_opened_to_citations_is_opened_on_one_port_or_those_of_the_web() -> None:
    rules = load_rules(
        [parse_opening("10.1.0.0/16"), parse_opening("127.0.0.1:8443"), parse_opening("[::1]:8000")]
    )
    opened = {
        url: rules.objection(there, [there.address]) == ""
        for url in (
            "http://10.1.2.3/",
            "https://10.1.2.3/",
            "http://10.1.2.3:8080/",  # fine in public
            "http://10.1.2.3:11434/",
            "http://127.0.0.1:8443/",
            "http://127.0.0.1/",
            "http://127.0.0.2:8443/",
            "http://[::1]:8000/",
            "http://[::1]/",
        )
        if (there := place(url)).address is not None
    }
    assert [url for url, is_open in opened.items() if is_open] == [
        "http://10.1.2.3/",
        "https://10.1.2.3/",
        "http://127.0.0.1:8443/",
        "http://[::1]:8000/",
    ]
    assert "loopback" in rules.objection(place("http://pages.test/"), [ipaddress.ip_address("127.0.0.1")])


@pytest.mark.parametrize(
    "text", ["", ":80", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536", "10.0.0.0/8:http", "::1", "::1:80",
             "[::1", "[::1]80", "localhost:80", "10.0.0.1/8", "1.2.3.4:80:80", "10.0.0.0/8 :80"],
)  # fmt: skip
def test_what_is_no_network_with_or_without_a_port_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_opening(text)


def test_allowed_networks_open_names_ports_and_addresses_but_every_answer_counts() -> None:
    rules = load_rules([Opening(ipaddress.ip_network(one)) for one in ("10.1.0.0/16", "fd12::/16")])
    inside, outside, private = (ipaddress.ip_address(one) for one in ("10.1.2.3", "9.9.9.9", "10.2.0.1"))
    wiki, public = place("http://wiki:9000/"), place("http://pages.test/")
    assert rules.objection(wiki, [inside, ipaddress.ip_address("fd12::1")]) == ""
    assert rules.objection(public, [inside, outside]) == ""
    assert "port 9000" in rules.objection(wiki, [inside, outside])
    assert "wiki is a name" in rules.objection(place("http://wiki/"), [inside, outside])
    assert rules.objection(public, [inside, outside, private]) == (
        "pages.test resolves to 10.2.0.1, a private address"
    )
    assert "10.1.2.3" in rules.objection(public, [ipaddress.ip_address("::ffff:10.1.2.3")]), (
        "by its own family"
    )
