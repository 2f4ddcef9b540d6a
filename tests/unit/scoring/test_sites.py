"""Whose page a URL is."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vouchgate.ingest.data import read_data
from vouchgate.ingest.scoring.score import are_others
from vouchgate.ingest.scoring.sites import MAX_URL_CHARACTERS, author_of, host_of, registrable_domain, site_of

SITES = [
    # the registrable domain
    ("https://example.com/a?b=1#c", "example.com"),
    ("HTTP://WWW.Docs.Example.COM:8443/", "example.com"),
    ("https://example.com./", "example.com"),
    ("https://a.b.example.co.uk/x", "example.co.uk"),
    ("https://www.ck/", "www.ck"),
    ("https://a.example.ck/", "a.example.ck"),
    ("https://wiki.corp/page", "wiki.corp"),
    # domains below which strangers have names
    ("https://alice.github.io/notes/", "alice.github.io"),
    ("https://foo.blogspot.com/2024/01/x.html", "foo.blogspot.com"),
    ("https://x.s3.amazonaws.com/key", "x.s3.amazonaws.com"),
    ("https://s3.amazonaws.com/bucket/key", "s3.amazonaws.com/bucket"),
    ("https://thing.readthedocs.io/en/latest/", "thing.readthedocs.io"),
    ("https://a.b.substack.com/p/x", "b.substack.com"),
    ("https://www.livejournal.com/", "livejournal.com"),
    # accounts of platforms
    ("https://github.com/Alice/tool/issues/7", "github.com/alice"),
    ("https://www.github.com/%61lice", "github.com/alice"),
    ("https://github.com/x/../alice//tool", "github.com/alice"),
    ("https://github.com/x/%2e%2E/alice", "github.com/alice"),
    ("https://github.com/orgs/alice/discussions/1", "github.com/alice"),
    ("https://gist.github.com/alice/0123", "github.com/alice"),
    ("https://raw.githubusercontent.com/alice/tool/main/README", "github.com/alice"),
    ("https://pkg.go.dev/github.com/alice/tool", "github.com/alice"),
    ("https://github.com/", "github.com"),
    ("https://github.com/advisories/GHSA-1", "github.com"),
    ("https://docs.github.com/en/rest", "github.com"),
    ("https://gitlab.com/alice/tool", "gitlab.com/alice"),
    ("https://git.sr.ht/~alice/tool", "sr.ht/~alice"),
    ("https://medium.com/@alice/post", "medium.com/@alice"),
    ("https://alice.medium.com/post", "medium.com/@alice"),
    ("https://dev.to/alice/post", "dev.to/alice"),
    ("https://sites.google.com/view/x/home", "sites.google.com/view/x"),
    ("https://sites.google.com/", "sites.google.com"),
    ("https://pypi.org/project/Tool/1.0/", "pypi.org/project/tool"),
    ("https://pypi.org/help/", "pypi.org"),
    ("https://www.npmjs.com/package/@scope/tool", "npmjs.com/package/@scope"),
    ("https://old.reddit.com/r/python/comments/1", "reddit.com/r/python"),
    ("https://twitter.com/alice/status/1", "x.com/alice"),
    ("https://www.youtube.com/@alice/videos", "youtube.com/@alice"),
    # a platform whose address does not show the author
    ("https://docs.google.com/document/d/1AbC/edit", "docs.google.com"),
    ("https://www.youtube.com/watch?v=1", "youtube.com"),
    ("https://youtu.be/1", "youtube.com"),
    # accounts anywhere
    ("https://www.cs.example.edu/~alice/paper.html", "example.edu/~alice"),
    ("https://www.cs.example.edu/%7Ealice/", "example.edu/~alice"),
    ("https://social.example/@alice/1", "social.example/@alice"),
    ("https://example.edu/~", "example.edu"),
    # addresses
    ("http://127.0.0.1:8080/x", "127.0.0.1"),
    ("http://[2001:DB8:0::1]:8080/~alice", "2001:db8::1"),
    # other scripts
    ("https://bücher.example/", "xn--bcher-kva.example"),
    ("https://BÜCHER.example/", "xn--bcher-kva.example"),
    ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
    ("https://a.例え.jp/", "xn--r8jz45g.jp"),
    # nobody's
    ("https://co.uk/", ""),
    ("https://github.io/", ""),
    ("http://localhost:8000/", ""),
]

ODD = [
    "",
    "example.com",
    "//example.com/",
    "ftp://example.com/",
    "https:///x",
    "https:example.com",
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://example.com\\@other.example/",
    "https://exa mple.com/",
    "https://example.com/\n",
    "\thttps://example.com/",
    "https://exam%70le.com/",
    "https://example..com/",
    "https://-example.com/",
    "https://example.com:99999/",
    "https://example.com:x/",
    "https://[::1/",
    "https://[::1%25eth0]/",
    "https://[example.com]/",
    "https://[v1.example]/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://1.2.3.04/",
    "http://1.2.3.4.5/",
    "http://example.0x/",
    "http://" + "a." * 200 + "com/",
    "http://" + "a" * 64 + ".com/",
    "http://\ud800.example/",
    "https://example.com/" + "a" * MAX_URL_CHARACTERS,
]


@pytest.mark.parametrize(("url", "site"), SITES)
def test_site(url: str, site: str) -> None:
    assert site_of(url) == site


@pytest.mark.parametrize("url", ODD)
def test_odd_urls_have_neither_site_nor_host(url: str) -> None:
    assert (site_of(url), host_of(url)) == ("", "")


def test_host_is_the_whole_name() -> None:
    assert host_of("https://WWW.Docs.example.com:8080/x") == "www.docs.example.com"
    assert host_of("http://localhost/") == "localhost"
    assert host_of("http://[::1]:80/") == "::1"


def platform_patterns() -> list[str]:
    document = tomllib.loads(
        resources.files("vouchgate.ingest.data").joinpath("platforms.toml").read_text("utf-8")
    )
    del document["pages"], document["houses"]
    return [p for group in document.values() for p in [*group["sites"], *group.get("same_as", {}).values()]]


@pytest.mark.parametrize("pattern", platform_patterns())
def test_every_platform_of_the_file_names_its_accounts(pattern: str) -> None:
    account = pattern.replace("*", "some-body")
    assert site_of(f"https://{account}") == account
    assert site_of(f"https://{account}/page/2?x=1") == account or "*" not in pattern
    assert account != registrable_domain(pattern.partition("/")[0]) or "*" not in pattern


def test_no_pattern_stands_twice() -> None:
    document = tomllib.loads(
        resources.files("vouchgate.ingest.data").joinpath("platforms.toml").read_text("utf-8")
    )
    del document["pages"], document["houses"]
    patterns = [p for group in document.values() for p in [*group["sites"], *group.get("same_as", {})]]
    assert len(patterns) == len(set(patterns))


def test_a_long_account_is_never_its_platform() -> None:
    assert site_of("https://github.com/" + "a" * 5000).startswith("github.com/aaa")


def test_who_writes_pages_and_who_owns_the_account_are_one() -> None:
    assert author_of("alice.github.io") == author_of("github.com/alice") == "github.com/alice"
    assert author_of("alice.srht.site") == author_of("sr.ht/~alice")
    assert author_of("example.com") == "example.com"
    assert author_of("") == ""


def test_sites_of_one_house_are_one_voice() -> None:
    houses = read_data("platforms.toml")["houses"]
    for first, sites in houses.items():
        for site in (first, *sites):
            assert site_of(f"https://{site}/x") == site
            assert author_of(site) == first
    assert not are_others("stackoverflow.com", "superuser.com")
    assert not are_others("wikidata.org", "wikipedia.org")
    assert are_others("stackoverflow.com", "wikipedia.org")


@given(st.text() | st.text().map("https://".__add__))
@example("https://[")
@example("https://\u3002\u3002")
@example("http://\u0660.\u0661")
def test_any_text_has_a_host_and_a_site_or_none(url: str) -> None:
    host, site = host_of(url), site_of(url)
    assert host == host.lower()
    assert host.isascii()
    assert site.isascii()
    assert host or not site


LABEL = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)


@given(
    st.lists(LABEL, min_size=1, max_size=5), LABEL, st.sampled_from(["", "/", "/x?y", "#z", "/~a", "/@b/c"])
)
def test_a_site_is_its_own_site(labels: list[str], account: str, path: str) -> None:
    host = ".".join(labels)
    for url in (f"https://{host}{path}", f"https://github.com/{account}{path}"):
        site = site_of(url)
        assert site == "" or site_of(f"https://{site}") == site
        assert site_of(url.replace("https://", "http://")) == site
