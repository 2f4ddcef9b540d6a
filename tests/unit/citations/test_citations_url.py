"""URL citations: where they end, what is none, and what stands inside one."""

import pytest

from vouchgate.ingest.citations import detect_citations


def seen(text: str) -> list[str]:
    return [f"{citation.type} {citation.value}" for citation in detect_citations(text)]


PAGE = "https://docs.example.com/a/b"


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        f"See {PAGE}.",
        f"See {PAGE}, then rest.",
        f"Is it {PAGE}?!",
        f"Here: {PAGE}: it works",
        f"({PAGE})",
        f"({PAGE}).",
        f"[text]({PAGE})",
        f'[text]({PAGE} "title")',
        f"[{PAGE}]",
        f"<{PAGE}>",
        f"{{{PAGE}}}",
        f'"{PAGE}"',
        f"'{PAGE}'",
        f"'{PAGE}',b",
        f"“{PAGE}”",
        f"‘{PAGE}’",
        f"«{PAGE}»",
        f"`{PAGE}`",
        f"``{PAGE}``",
        f"**{PAGE}**",
        f"**{PAGE}**.",
        f"*{PAGE}*",
        f"_{PAGE}_",
        f"~~{PAGE}~~",
        f"{PAGE}。次の文",
        f"请看{PAGE}，然后",
        f"（{PAGE}）",
        f"「{PAGE}」",
        f"{PAGE}—the page",
        f"{PAGE}…",
        f"{PAGE}...",
        f"{PAGE}'s page",
        f"{PAGE}\u200b",
        f'{{"u":"{PAGE}","v":1}}',
        f'{{\\"u\\":\\"{PAGE}\\"}}',
        f'<a href="{PAGE}">the page</a>',
        f"&lt;{PAGE}&gt;",
        f"|{PAGE}|",
        f"url={PAGE}",
        f"\\url{{{PAGE}}}",
        f"line one\n{PAGE}\nline two",
        f"{PAGE}\t",
    ],
)
def test_the_page_and_nothing_else(text: str) -> None:
    assert [value for value in seen(text) if value.startswith("url ")] == [f"url {PAGE}"]


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "HTTPS://Example.COM/Path",
        "https://example.com/",
        "https://example.com:8443/x?y=1&z=2#frag",
        "http://localhost:8080/health",
        "http://192.0.2.7/x",
        "http://[::1]:8080/metrics",
        "http://[2001:db8::5]/",
        "https://user:pw@example.com/x",
        "https://en.wikipedia.org/wiki/Lock_(computer_science)",
        "https://example.com/a_(b)_(c)/d",
        "https://example.com/a,b;c=d",
        "https://example.com/~ann/x%20y+z",
        "https://example.com/x?q[]=1&q[]=2",
        "https://web.archive.org/web/2020/https://example.org/page",
        "https://github.com/acme/tool/compare/9c1d8e3...3f2a7b6",
        "https://github.com/acme/tool/commit/9c1d8e3f2a#r12",
        "https://github.com/acme/tool/issues/12#issuecomment-345",
        "https://doi.org/10.1038/nature14539",
        "https://www.rfc-editor.org/rfc/rfc9110#section-8.6",
        "https://nvd.nist.gov/vuln/detail/CVE-2020-11008",
        "https://arxiv.org/abs/1706.03762",
        "https://bücher.example/straße",
        "https://example.com/文档",
        "https://example.com/docs/*",
        "https://example.com/a--b-/c_",
        "https://example.com?x=1",
    ],
)
def test_whole_url(url: str) -> None:
    assert seen(f"As {url} shows") == [f"url {url}"]
    assert seen(f"({url})") == [f"url {url}"]


@pytest.mark.parametrize(
    "text",
    [
        "www.example.com and example.com/a/b",
        "ann@example.com or mailto:ann@example.com",
        "ssh://git@example.com/acme/tool.git#12",
        "ftp://ftp.example.com/rfc2119.txt",
        "file:///etc/hosts and data:text/plain,hi",
        "git+https://example.com/acme/tool.git",
        "http:// and https:// alone, http://...",
        "https://$HOST/issues/12 and https://<host>/x",
        "//example.com/x",
        "https:/example.com",
        "http://[not-an-address]/",
        "http://example.com:port#x@other.example",
    ],
)
def test_not_a_url(text: str) -> None:
    assert seen(text) == []


def test_two_urls_and_what_follows() -> None:
    assert seen("https://a.example/1,https://b.example/2 (https://c.example/3),#12") == [
        "url https://a.example/1",
        "url https://b.example/2",
        "url https://c.example/3",
        "issue #12",
    ]
    assert seen("[https://a.example/1](https://a.example/1)") == ["url https://a.example/1"] * 2
    assert seen("'https://a.example/1','https://b.example/2'") == [
        "url https://a.example/1",
        "url https://b.example/2",
    ]
    assert seen("\\href{https://a.example/1}{RFC 9110}") == ["url https://a.example/1", "rfc RFC 9110"]


def test_key_folds_scheme_and_host_only() -> None:
    [citation] = detect_citations("HTTPS://User@Docs.Example.COM:443/Path?Q=1#Frag")
    assert citation.key == "url:https://User@docs.example.com:443/Path?Q=1#Frag"
