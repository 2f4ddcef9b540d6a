"""What the form of an HTML page says of a sentence on it, and whose words it has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.sources.web.markup import read_html
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
SAID = "The ferry office sells tickets on Sundays."
P = f"<p>{SAID}</p>"
BESIDE = (
    "<p>Boats leave from the north side of the pier, and every one of them has a bell that is rung before it goes.</p>"
    "<p>The pier belongs to the town, which paints it in May and closes it while that is done.</p>"
)
LONG = "<!doctype html><html><head><title>The pier</title></head><body><main><h1>The pier</h1>{}</main></body></html>"
PAGES = {"long": LONG.replace("{}", f"{BESIDE}{{}}{BESIDE}"), "short": "<html><body>{}</body></html>"}


def text_of(source: str) -> str:
    page = read_html(source.encode(), url="https://a.example/x", content_type="text/html", now=NOW)
    return page.text


def stance(text: str) -> Stance:
    (held,) = stances(SAID, SourceText(text))
    return held.stance


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "part",
    [
        f"<h2>Rejected</h2>{P}",
        f"<h2>Roadmap</h2>{P}",
        f"<h3>4. Before 2024</h3>{P}",
        f"<h2>Common myths</h2><ul><li><p>{SAID}</p></li></ul>",
        f"<p>If the winter is mild:</p><ul><li>{SAID}</li></ul>",
        f"<p>A passenger wrote:</p><blockquote>{SAID}</blockquote>",
        f"<p>A passenger wrote:</p><blockquote><p>It rained.</p><p>{SAID}</p></blockquote>",
        f"<p>We do not say this:</p><ul><li>{SAID}</li></ul>",
        f"{P}<p>That is no longer the case.</p>",
        f"<p>Myth: {SAID}</p>",
        f"<table><tr><th>What</th><th>State</th></tr><tr><td>{SAID}</td><td>planned</td></tr></table>",
    ],
)
def test_what_frames_a_sentence_is_read_with_it(page: str, part: str) -> None:
    assert stance(text_of(PAGES[page].replace("{}", part))) is not Stance.STATES


@pytest.mark.parametrize(
    "notice",
    [
        '<div class="site-banner">This page is outdated.</div>',
        '<section role="alert"><p>This document has been superseded.</p></section>',
        '<p class="retraction-notice">This article has been retracted.</p>',
    ],
)
def test_what_a_notice_beside_the_text_says_of_the_page_counts(notice: str) -> None:
    source = PAGES["long"].replace("{}", P).replace("<main>", f"{notice}<main>")
    assert stance(text_of(source)) is not Stance.STATES
    assert stance(text_of(source.replace("This", "Each"))) is Stance.STATES


def test_what_is_retracted_by_its_heading_does_not_hold() -> None:
    source = PAGES["long"].replace("{}", P).replace("<h1>The pier", "<h1>RETRACTED ARTICLE: The pier")
    assert stance(text_of(source)) is not Stance.STATES


def test_code_goes_on_from_the_words_before_it() -> None:
    part = "<p>To sell a ticket, run:</p><pre><code>sell --sundays\nsell --done</code></pre>"
    text = text_of(PAGES["long"].replace("{}", part))
    (held,) = stances("To sell a ticket, run `sell --sundays`.", SourceText(text))
    assert held.stance is Stance.STATES


def test_a_line_in_bold_is_a_heading() -> None:
    part = f"<p><b>Rejected</b></p>{P}<p><strong>Rules</strong></p>"
    assert stance(text_of(PAGES["long"].replace("{}", part))) is not Stance.STATES
    assert stance(text_of(PAGES["long"].replace("{}", f"<p><b>{SAID}</b></p>"))) is Stance.STATES


@pytest.mark.parametrize(
    "heading",
    [
        "<h1>Rejected</h1>",
        '<div role="heading" aria-level="2">Rejected</div>',
        '<div class="title"><strong>Rejected</strong></div>',
        "<p><b>Rejected</b></p>",
    ],
)
def test_what_looks_like_a_heading_is_one(heading: str) -> None:
    assert stance(text_of(PAGES["long"].replace("{}", f"{heading}{P}"))) is not Stance.STATES


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "part",
    [
        P,
        f"<h2>{SAID}</h2>",
        f"<h2>Roadmap</h2><p>There will be a bridge.</p><h2>Hours</h2>{P}",
        f"<p>If you have a question, write to:</p><ul><li>the office</li><li>the town</li></ul>{P}",
        f"<p>A passenger wrote:</p><blockquote>It rained.</blockquote>{P}",
        f"<p>We do not sell:</p><ul><li>maps</li><li>books</li></ul>{P}",
        f"<p>Planned: a bridge to the island.</p>{P}",
        f"<ul><li>Draft: the colour of the roof.</li></ul>{P}",
        f"<pre><code>sell --all\n# Rejected\nsell --sundays</code></pre>{P}",
    ],
)
def test_a_frame_ends_where_its_part_of_the_page_ends(page: str, part: str) -> None:
    assert stance(text_of(PAGES[page].replace("{}", part))) is Stance.STATES


@pytest.mark.parametrize(
    "part",
    [
        '<script type="application/ld+json">{"@type":"Article","articleBody":"%s"}</script>',
        '<script type="application/ld+json">{"@type":"Review","reviewBody":"%s"}</script>',
        "<template><p>%s</p></template>",
        "<textarea>%s</textarea>",
        "<select><option>%s</option></select>",
        "<dialog><p>%s</p></dialog>",
        '<p style="visibility: collapse">%s</p>',
    ],
)
@pytest.mark.parametrize("beside", ["<p>Boats leave at nine.</p>", BESIDE])
def test_what_only_programs_see_is_not_what_the_page_says(beside: str, part: str) -> None:
    source = LONG.replace("{}", beside + part.replace("%s", f"{SAID} {SAID} {SAID}"))
    text = text_of(source)
    assert "ferry office" not in text
    assert "Boats leave" in text


def test_what_is_for_readers_without_scripts_is_read_where_there_is_nothing_else() -> None:
    aside = f"<noscript><h2>Hours</h2>{P}</noscript>"
    assert SAID not in text_of(LONG.replace("{}", f"{BESIDE}{aside}"))
    shell = '<html><head><title>Forum</title></head><body><div id="root"></div>{}</body></html>'
    assert text_of(shell.replace("{}", aside)) == f"## Hours\n\n{SAID}"
    assert SAID in text_of(shell.replace("{}", f"<noscript>{BESIDE}{P}{BESIDE}</noscript>"))


@pytest.mark.parametrize(
    "part",
    [
        '<section id="usernotes"><h3>User Contributed Notes <i>1 note</i></h3><div class="note">%s</div></section>',
        '<div class="wp-block-comments"><ol><li>%s</li></ol></div>',
        '<section><h3>Say something</h3><div itemprop="comment" itemtype="https://schema.org/Comment">%s</div></section>',
        '<section aria-label="Comments"><div>%s</div></section>',
        '<section class="ab-12 CommentsContainer"><ul><li>%s</li></ul></section>',
        '<div id="customer-reviews"><div>%s</div></div>',
        '<article class="comment"><div>%s</div></article>',
        "<section><h2>3 comments</h2><div>%s</div></section>",
        "<h2>Comments (1)</h2><div>%s</div><h2>Hours</h2>",
        "<h3>Reader comments</h3>%s",
        "<reader-comments><div>%s</div></reader-comments>",
    ],
)
def test_what_visitors_write_below_is_not_what_the_page_says(part: str) -> None:
    text = text_of(LONG.replace("{}", BESIDE + part.replace("%s", P)))
    assert "ferry office" not in text
    assert "paints it in May" in text


@pytest.mark.parametrize(
    "part",
    [
        '<section id="code-comments"><h2>Code comments<a href="#x">¶</a></h2>%s</section>',
        '<h2 id="comments">Comments</h2>%s',
        '<section id="user-notes"><h2>User notes</h2>%s</section>',
        '<div class="has-comments">%s</div>',
        '<article itemtype="https://schema.org/Review"><h1>The pier</h1>%s</article>',
        "<h2>Customer reviews</h2><p>They are read by the town.</p><h2>Hours</h2>%s",
    ],
)
def test_a_page_about_comments_keeps_its_words(part: str) -> None:
    assert "ferry office" in text_of(LONG.replace("{}", BESIDE + part.replace("%s", P)))


def test_a_page_of_comments_is_left_as_it_is() -> None:
    source = (
        f'<html><body><h1>Tickets</h1><div aria-label="Comments"><p>{SAID}</p>{BESIDE}</div></body></html>'
    )
    assert "paints it in May" in text_of(source)


def revised(head: str) -> datetime | None:
    source = LONG.replace("<title>", f"{head}<title>").replace("{}", BESIDE)
    return read_html(source.encode(), url="https://a.example/x", content_type="text/html", now=NOW).revised


def test_when_a_page_was_changed_is_what_its_software_says() -> None:
    linked = (
        '<script type="application/ld+json">{"datePublished": "2003-01-01", "dateModified": "%s"}</script>'
    )
    assert revised(linked % "2025-05-20T10:00:00Z") == datetime(2025, 5, 20, 10, tzinfo=UTC)
    two = linked % "2024-01-01T00:00:00Z" + linked % "2025-05-20"
    assert revised(two) == datetime(2025, 5, 20, tzinfo=UTC)  # the latest of them
    for nothing in (
        "",
        linked % "2026-05-20",
        linked % "yesterday...",
        "<meta name='date' content='2020-05-20'>",
    ):
        assert revised(nothing) is None
