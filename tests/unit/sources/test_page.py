"""What is read out of the bytes of an answer: kind, characters, main text, title, date, links."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.sources.web.markup import read_html, read_xml
from vouchgate.ingest.sources.web.page import (
    EARLIEST,
    ContentKind,
    Page,
    clean,
    decode,
    kind_of,
    last_modified,
    plausible,
    read_plain,
    without_echo,
)

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
URL = "https://docs.ferry.example/3.2/pool.html"


def read(source: str, url: str = URL) -> Page:
    return read_html(source.encode(), url=url, content_type="text/html; charset=utf-8", now=NOW)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


# --- documentation pages, as the usual tools write them

SPHINX = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>ferry.pool — Connection pools — Ferry 3.2 documentation</title></head><body>
<div class="related" role="navigation"><h3>Navigation</h3><ul>
<li><a href="genindex.html">general index</a></li></ul></div>
<div class="document"><div class="body" role="main"><section id="connection-pools">
<h1>Connection pools<a class="headerlink" href="#connection-pools">¶</a></h1>
<p>New in version 2.4.</p><p>A pool keeps idle sockets open, so that later requests need no new handshake.</p>
<dl class="py class"><dt class="sig"><em>class </em><span>ferry.pool.</span><span>Pool</span>(
<em>size=<span>16</span></em>, <em>idle_timeout=<span>90.0</span></em>)</dt><dd>
<p>A bounded set of sockets to one host.</p>
<dl class="field-list"><dt>Parameters</dt><dd><ul><li>
<p><strong>size</strong> – open sockets, at most 256.</p></li></ul></dd>
<dt>Raises</dt><dd><p>PoolExhausted when no socket becomes free in time.</p></dd></dl></dd></dl>
<section id="sharing"><h2>Sharing<a class="headerlink" href="#sharing">¶</a></h2>
<p>A pool may be shared between threads and not between forked processes.</p></section>
<section id="cookies"><h2>Cookies</h2><table class="docutils"><thead><tr><th><p>Variable</p></th>
<th><p>Default</p></th></tr></thead>
<tbody><tr><td><p>FERRY_COOKIE_DAYS</p></td><td><p>14</p></td></tr><tr><td><p>FERRY_JAR</p></td><td><ul><li>memory</li>
<li>disk</li></ul></td></tr></tbody></table></section>
<aside class="footnote brackets" role="doc-footnote"><span>1</span><p>Measured on a kernel of 6.1.</p></aside>
<div class="admonition warning"><p class="admonition-title">Warning</p><p>Close a pool before the loop ends.</p></div>
<div class="highlight"><pre><span>from</span> <span>ferry</span> <span>import</span> <span>Pool</span>
<span>pool</span> <span>=</span> <span>Pool</span>(<span>size</span>=<span>32</span>)
</pre></div></section></div></div>
<div class="sphinxsidebar" role="navigation"><h4>Previous topic</h4><p><a href="retry.html">Retry budgets</a></p></div>
<div class="footer" role="contentinfo">Copyright 2019, The Ferry authors.</div></body></html>"""

MATERIAL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Limits - Harbor</title></head><body>
<header class="md-header"><nav><a href="..">Harbor</a></nav></header><main class="md-main">
<div class="md-sidebar"><nav class="md-nav"><ul><li><a href="../tls/">Rotating certificates</a></li></ul></nav></div>
<article class="md-content__inner"><h1 id="limits">Limits</h1><p>All keys live in <code>harbor.yml</code>.</p>
<table><thead><tr><th>Key</th><th>Default</th></tr></thead><tbody><tr><td><code>max_body</code></td><td>8388608</td></tr>
</tbody></table><div class="highlight"><table class="highlighttable"><tr><td class="linenos"><pre>1</pre></td>
<td class="code"><pre><code><span>listen</span>: <span>0.0.0.0:7443</span></code></pre></td></tr></table></div>
<details class="note"><summary>Since 1.9</summary><p>The key workers replaces threads.</p></details>
<aside aria-label="Caution" class="starlight-aside starlight-aside--caution">
<p>Bodies over the limit are cut off.</p></aside>
<div>Plain boxes hold words too: a reload takes 3 seconds.</div>
<figure><img src="a.png" alt=""><figcaption>Figure 1: time of a reload over a day.</figcaption></figure>
<p>It was released on <time datetime="2024-03-01">1 March 2024</time> as version 1.9.</p>
<ul><li>Stop with SIGTERM, which waits 10 seconds for open requests.</li></ul></article></main>
<footer class="md-footer">Made with a generator</footer></body></html>"""

OLD = """<html><head><title>Server variables</title></head><body><table width="100%"><tr><td><a href="a">Home</a><br>
<a href="b">Download</a></td><td><h1>Server variables</h1><p>These can be set at run time.</p><table border="1"><tr>
<th>Name</th><th>Range</th></tr><tr><td>sort_buffer</td><td>32768 to 4294967295</td></tr></table>
<p>thread_cache of -1 means autosizing.</p></td></tr></table></body></html>"""

BOXES = """<!doctype html><html><head><title>Quotas</title></head><body><div id="app"><div class="a"><div class="b">
<div>Each project may have at most 40 queues.</div><div class="row"><div>Payload</div><div>256 KB</div>
</div></div></div></div></body></html>"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            SPHINX,
            [
                "Connection pools",
                "New in version 2.4.",
                "ferry.pool.Pool(size=16,",
                "idle_timeout=90.0)",
                "open sockets, at most 256.",
                "PoolExhausted when",
                "threads and not between forked processes",
                "FERRY_COOKIE_DAYS | 14",
                "memory; disk",
                "Measured on a kernel of 6.1.",
                "Close a pool before the loop ends.",
                "pool = Pool(size=32)",
            ],
        ),
        (
            MATERIAL,
            [
                "harbor.yml",
                "max_body | 8388608",
                "listen: 0.0.0.0:7443",
                "Since 1.9",
                "replaces threads",
                "Bodies over the limit are cut off.",
                "a reload takes 3 seconds",
                "time of a reload over a day",
                "It was released on 1 March 2024 as version 1.9.",
                "waits 10 seconds",
            ],
        ),
        (OLD, ["can be set at run time", "sort_buffer | 32768 to 4294967295", "-1 means autosizing"]),
        (BOXES, ["at most 40 queues", "Payload", "256 KB"]),
    ],
)
def test_nothing_a_claim_may_cite_is_lost(source: str, said: list[str]) -> None:
    text = squeezed(read(source).text)
    assert [part for part in said if squeezed(part) not in text] == []


@pytest.mark.parametrize(
    ("source", "beside"),
    [(SPHINX, ["general index", "Retry budgets", "Copyright"]), (MATERIAL, ["Rotating", "Made with"])],
)
def test_what_stands_beside_the_main_text_is_left_out(source: str, beside: list[str]) -> None:
    text = read(source).text
    assert [part for part in beside if part in text] == []


@pytest.mark.parametrize("filler", [0, 40], ids=["whole", "main text"])
def test_what_is_struck_out_or_hidden_is_not_what_the_page_says(filler: int) -> None:
    page = read(
        "<html><body><main><h1>Doors</h1><p>Doors close at <del>nine</del><s>ten</s> seven.</p>"
        "<p hidden>Interns have keys.</p><div style='color:red; Display : none'><p>The code is 1234.</p></div>"
        "<div role='tabpanel' hidden><p>Windows close at eight.</p></div>"
        + "<p>The porter walks through each of the rooms once more.</p>" * filler
        + "</main></body></html>"
    )
    assert [word for word in ("nine", "ten ", "Interns", "1234") if word in page.text] == []
    assert [word for word in ("seven", "eight") if word not in page.text] == []


def test_comments_of_readers_are_not_what_the_page_says() -> None:
    comments = (
        '<section id="comments"><h3>Comments</h3><p>In my setup the limit is 9000 queues.</p></section>'
    )
    source = SPHINX.replace("</section></div></div>", f"</section>{comments}</div></div>")
    assert comments in source
    assert "9000" not in read(source).text


def test_title_and_heading() -> None:
    page = read(SPHINX)
    assert page.title == "ferry.pool — Connection pools — Ferry 3.2 documentation"
    assert page.heading == "Connection pools"
    assert read("<html><body><h1>Only a heading</h1><p>x</p></body></html>").title == "Only a heading"
    assert read('<head><meta property="og:title" content=" A  b "></head><p>x</p>').title == "A b"


def test_a_page_without_a_main_text_gives_the_text_of_its_body() -> None:
    page = read("<html><body><script>var a = 1;</script><span>Only</span> <b>this</b></body></html>")
    assert page.text == "Only this"


@pytest.mark.parametrize("source", ["", " ", "<!-- nothing -->", "<html></html>", "\0\0"])
def test_a_page_of_nothing_says_nothing(source: str) -> None:
    assert read(source).text == ""


def test_a_document_of_very_many_elements_is_read_whole() -> None:
    rows = "".join(f"<tr><td>key_{n}</td><td>{n}</td></tr>" for n in range(20_000))
    page = read(f"<html><head><title>Keys</title></head><body><table>{rows}</table></body></html>")
    assert "| key_0 | 0 |\n| key_1 | 1 |\n" in page.text
    assert len(page.text) <= TEXT_CHARACTERS


def test_what_is_not_all_of_a_page_says_so() -> None:
    assert not read(SPHINX).cut
    assert read(f"<html><body><p>{'many words ' * (TEXT_CHARACTERS // 10)}</p></body></html>").cut
    assert read("<html><body>" + "<div>deep " * 300 + "</div>" * 300 + "<p>more</p></body></html>").cut
    assert read_plain(b"x" * (TEXT_CHARACTERS + 1), "text/plain").cut
    assert not read_plain(b"x" * TEXT_CHARACTERS + b"\n" * 99, "text/plain").cut
    assert read_xml(b"<a>deep " * 300 + b"</a>" * 300, content_type="text/xml").cut


# --- dates


@pytest.mark.parametrize(
    ("head", "body", "dated"),
    [
        (
            '<meta property="article:published_time" content="2022-02-10T09:00:00Z">'
            '<meta property="article:modified_time" content="2023-05-01T09:00:00Z">',
            "",
            datetime(2023, 5, 1, tzinfo=UTC),
        ),
        (
            '<meta property="article:published_time" content="2022-02-10T09:00:00Z">',
            "",
            datetime(2022, 2, 10, tzinfo=UTC),
        ),
        (
            "",
            "<p>This page was last updated on <time datetime='2024-03-13'>13 March</time></p>",
            datetime(2024, 3, 13, tzinfo=UTC),
        ),
        ("", "<p>Copyright 2019 to 2021 by us</p>", None),
        ('<meta property="article:modified_time" content="2031-05-01T09:00:00Z">', "", None),
        ('<meta property="article:modified_time" content="1985-05-01T09:00:00Z">', "", None),
        ('<meta property="article:modified_time" content="99999999999999999999">', "", None),
    ],
)
def test_the_date_of_a_page(head: str, body: str, dated: datetime | None) -> None:
    page = read(f"<html><head><title>t</title>{head}</head><body><p>Some words.</p>{body}</body></html>")
    assert page.dated == dated


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_no_date_is_in_the_future_or_before_the_web(moment: datetime) -> None:
    kept = plausible(moment, NOW)
    assert kept is None or EARLIEST <= kept <= NOW
    assert (kept is None) == (not EARLIEST <= moment.replace(tzinfo=UTC) <= NOW)


def test_last_modified_counts_unless_it_is_the_moment_of_the_answer() -> None:
    assert last_modified({"last-modified": "Wed, 01 May 2024 10:00:00 GMT"}, NOW) == datetime(
        2024, 5, 1, 10, tzinfo=UTC
    )
    made_now = {"last-modified": "Sun, 01 Jun 2025 11:59:58 GMT", "date": "Sun, 01 Jun 2025 11:59:59 GMT"}
    assert last_modified(made_now, NOW + timedelta(hours=1)) is None
    assert last_modified({"last-modified": "Sun, 01 Jun 2025 11:59:58 GMT"}, NOW) is None
    assert last_modified({"last-modified": "Wed, 01 May 2030 10:00:00 GMT"}, NOW) is None


@given(st.text(max_size=200))
def test_any_header_may_stand_where_a_date_should(value: str) -> None:
    last_modified({"last-modified": value, "date": value}, NOW)


# --- links, refresh, forms


def test_links_of_the_main_text_one_for_each_host_and_account() -> None:
    filler = "<p>Every region keeps three copies of each shard of the store.</p>" * 5
    page = read(
        f"""<html><head><base href="/guide/"></head><body><nav><a href="https://ads.example/">x</a></nav><main><article>{filler}
        <p>See <a href="https://other.example/a">one</a>, <a href="https://other.example/a/b">the same</a> and
        <a href="//third.example/x">third</a>, <a href="../near">near</a>, <a href="mailto:a@b.example">mail</a>,
        <a href="javascript:alert(1)">no</a>, <a href="http://[::bad">bad</a>.</p>{filler}</article></main></body></html>"""
    )
    assert page.links == (
        "https://other.example/a",
        "https://third.example/x",
        "https://docs.ferry.example/near",
    )


@pytest.mark.parametrize(
    ("content", "leads"),
    [
        ("0; url=../latest/", "https://docs.ferry.example/latest/"),
        ("0;URL='https://b.example/'", "https://b.example/"),
        ("300; url=/x", ""),
        ("5", ""),
        ("0; url=javascript:alert(1)", ""),
        ("", ""),
    ],
)
def test_where_a_page_sends_a_browser(content: str, leads: str) -> None:
    assert read(f'<html><head><meta http-equiv="Refresh" content="{content}"></head></html>').refresh == leads


def test_whether_it_asks_for_a_password() -> None:
    assert read("<form><input type=PASSWORD></form>").asks_password
    assert not read("<form><input type=text><input></form>").asks_password


def test_a_page_that_is_nothing_but_a_link() -> None:
    assert read("<a href='/x'>Go there</a>").text == "Go there"


# --- XML


def test_xml_gives_the_text_of_its_elements() -> None:
    page = read_xml(
        b"<?xml version='1.0' encoding='ISO-8859-1'?><feed xmlns='urn:x'><title>Caf\xe9 notes</title>"
        b"<script>no</script><entry><!-- no --><summary>The limit<!-- no --> is 40<?no?>.</summary></entry></feed>",
        content_type="application/xml",
    )
    assert (page.title, page.text) == ("Café notes", "Café notes\nThe limit is 40.")


def test_xml_entities_are_not_unfolded_and_files_not_read() -> None:
    bomb = b"<!DOCTYPE a [<!ENTITY a 'ha'>" + b"".join(
        b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10 if n else b"&a;") for n in range(12)
    )
    assert "ha" not in read_xml(bomb + b"]><a>&a11;x</a>", content_type="application/xml").text
    file = b"<!DOCTYPE a [<!ENTITY f SYSTEM 'file:///etc/hostname'>]><a>&f;x</a>"
    assert read_xml(file, content_type="application/xml").text == "x"


@pytest.mark.parametrize("source", [b"", b"   ", b"no xml at all", b"<a", b"\xff\xfe\x00"])
def test_what_is_no_xml_says_nothing(source: bytes) -> None:
    assert read_xml(source, content_type="text/xml").text == ""


# --- kinds and characters


@pytest.mark.parametrize(
    ("content_type", "start", "kind"),
    [
        ("text/html; charset=utf-8", b"x", ContentKind.HTML),
        ("Application/XHTML+XML", b"x", ContentKind.HTML),
        ("application/atom+xml", b"x", ContentKind.XML),
        ("image/svg+xml", b"<svg", ContentKind.NONE),
        ("application/xml", b"<html xmlns='http://www.w3.org/1999/xhtml'><body>", ContentKind.HTML),
        ("text/plain", b"<!DOCTYPE html><p>", ContentKind.HTML),
        ("text/markdown", b"<html>", ContentKind.PLAIN),
        ("text/markdown", b"# x", ContentKind.PLAIN),
        ("application/problem+json", b"{}", ContentKind.PLAIN),
        ("application/pdf", b"%PDF-1.7", ContentKind.NONE),
        ("text/plain", b"%PDF-1.7", ContentKind.NONE),
        ("text/plain", b"\x7fELF\0\0", ContentKind.NONE),
        ("text/plain; charset=utf-16", "words".encode("utf-16-le"), ContentKind.PLAIN),
        ("application/octet-stream", b"text", ContentKind.NONE),
        ("image/png", None, ContentKind.NONE),
        ("", None, ContentKind.PLAIN),
        ("", b" \n<!-- x --><!DOCTYPE HTML><p>", ContentKind.HTML),
        ("", b"words", ContentKind.PLAIN),
        ("", b"PK\x03\x04\0\0", ContentKind.NONE),
    ],
)
def test_how_an_answer_is_read(content_type: str, start: bytes | None, kind: ContentKind) -> None:
    assert kind_of(content_type, start) is kind


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("Größe".encode(), "text/plain; charset=utf-8", "Größe"),
        ("Größe".encode(), "text/plain; charset=iso-8859-1", "Größe"),  # a wrong header
        ("Größe".encode("latin-1"), "text/plain; charset=utf-8", "Größe".replace("ö", "\ufffd").replace("ß", "\ufffd")),
        ("Größe “x”".encode("cp1252"), "text/plain; charset=iso-8859-1", "Größe “x”"),
        ("Größe".encode("latin-1"), "", "Größe"),
        ("Größe".encode("utf-8-sig"), "text/plain; charset=cp1251", "Größe"),
        ("Größe".encode("utf-16"), "", "Größe"),
        ("Größe".encode("utf-16-le"), "text/plain; charset=utf-16le", "Größe"),
        ("размер".encode("koi8-r"), "text/plain; charset=KOI8-R", "размер"),
        ("大きさ".encode("iso2022_jp"), "text/plain; charset=iso-2022-jp", "大きさ"),
        (b"<meta charset=cp1251>" + "размер".encode("cp1251"), "text/html", "<meta charset=cp1251>размер"),
        ("Größ".encode()[:-1], "", "Grö"),  # cut within a character
        ("Größe".encode("latin-1"), "text/plain; charset=zlib", "Größe"),  # no encoding of text
        ("Größe".encode("latin-1"), "text/plain; charset=no-such-thing", "Größe"),
    ],
)  # fmt: skip
def test_characters(body: bytes, content_type: str, text: str) -> None:
    assert decode(body, content_type) == text


def test_what_a_change_takes_out_is_not_said() -> None:
    diff = b"Subject: less\n\n- a list\n\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n It rains.\n-It snows.\n+It is dry.\n"
    text = read_plain(diff, "text/x-diff").text
    assert "It snows" not in text
    assert all(said in text for said in ("- a list", "It rains", "+It is dry"))
    listed = b"Rules:\n- It snows.\n--- a\n"
    assert "It snows" in read_plain(listed, "text/plain").text


def test_plain_text_is_cut_and_its_markdown_heading_is_its_title() -> None:
    page = read_plain(b"\n# Limits  of\tqueues\r\n\r\nAt most 40.\0", "text/markdown")
    assert page == Page(
        title="Limits of queues", text="# Limits  of\tqueues\n\nAt most 40.", heading="Limits of queues"
    )
    assert len(read_plain("ß".encode() * 1_000_000, "text/plain").text) == TEXT_CHARACTERS


def storable(text: str) -> bool:
    text.encode()  # raises for a lone surrogate
    return "\0" not in text and text == clean(text)


@given(st.binary(max_size=300), st.text(max_size=40))
def test_plain_text_of_any_bytes_can_be_stored(body: bytes, content_type: str) -> None:
    page = read_plain(body, content_type)
    assert storable(page.text)
    assert storable(page.title)


HTML_BITS = st.sampled_from(
    """<html>|<body>|<main>|<article>|<p>|</p>|<div>|</div>|<section id=a>|<h1>|</h1>|<table>|<tr>|<td>|</td>|<ul>|<li>
<aside class=note>|<figure>|<figcaption>|<pre>|<a href=x>|<a href=//[>|</a>|<base href=//[>|<time>|<svg>|<title>|<nav>
<input type=password>|<meta charset=utf-16>|<meta http-equiv=refresh content=0;url=x>|<script>|</script>|<!--|-->|]]>
<![CDATA[|<?xml version='1.0'?>|&#0;|&#xD800;|&#x110000;|&amp|&nbsp;|\0|\ud800|\x85|\u2028|words|40|-| """.replace(
        "\n", "|"
    ).split("|")
)


@settings(max_examples=150, deadline=None)
@given(st.lists(HTML_BITS | st.text(max_size=5), max_size=30))
def test_html_of_any_shape_can_be_read_and_stored(bits: list[str]) -> None:
    body = "".join(bits).encode("utf-8", "surrogatepass")
    page = read_html(body, url=URL, content_type="text/html", now=NOW)
    assert all(storable(each) for each in (page.text, page.title, page.heading, page.refresh, *page.links))
    assert page.dated is None or EARLIEST <= page.dated <= NOW
    assert len(page.text) <= TEXT_CHARACTERS
    assert storable(read_xml(body, content_type="text/xml").text)


# --- what a page only repeats

ASKED = "the%20vault%20has%20no%20door"


@pytest.mark.parametrize(
    "url",
    [
        f"https://a.example/search?page=1&q={ASKED}",
        "https://a.example/search?q=The+vault+has+NO+door&page=1",
        "https://a.example/search?the+vault_has-no+door",
        f"https://a.example/search/{ASKED}/2",
        "https://a.example/search?q=the%2520vault%2520has%2520no%2520door",
        "https://a.example/?" + "&".join(["x"] * 300) + f"&q={ASKED}",
        "https://a.example/search/the-vault-has-no-door",
        "https://a.example/wiki/Special:Search/The_vault_has_no_door",
        "https://a.example/search/the/vault/has/no/door",
        "https://a.example/?a=the+vault&b=has&c=no+door",
        "https://a.example/search?q=TheVaultHasNoDoor",
        "https://a.example/show?text=dGhlIHZhdWx0IGhhcyBubyBkb29y",
    ],
)
def test_what_an_address_says_of_itself_is_not_said_by_its_page(url: str) -> None:
    page = Page(
        title="The vault has no door - Search", text='No results for "the vault has no door".\nThe vault is.'
    )
    told = without_echo(page, [url])
    assert (told.title, told.text) == (" - Search", 'No results for "".\nThe vault is.')


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/the-vault-has-no-door",
        "https://a.example/wiki/The_vault_has_no_door#the-vault-has-no-door",
        "https://a.example/search?q=vault+door",
        "https://a.example/search/vault/the_door?page=dGhlIHZhdWx0IGhhcyBu_",
        "https://[a.example/",
    ],
)
def test_a_page_keeps_its_own_words(url: str) -> None:
    page = Page(title="The vault has no door", text="The vault has no door, and never had.")
    assert without_echo(page, [url]) == page


@given(st.text(max_size=80), st.text(max_size=80))
def test_nothing_is_added_to_a_page_that_repeats_its_address(text: str, said: str) -> None:
    told = without_echo(Page(text=text), [f"https://a.example/?q={said}"]).text
    rest = iter(text)
    assert all(character in rest for character in told)
