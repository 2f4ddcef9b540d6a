"""What the bytes of an answer are: their kind, their characters, their date. Pure; nothing here parses HTML.

HTML and XML are parsed in `ingest.sources.web.markup`, which runs in processes of their own.
"""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.language.words import RUN, runs

TITLE_CHARACTERS = 300
EARLIEST = datetime(1991, 1, 1, tzinfo=UTC)  # the first web page is of that year
_JUST_MADE = timedelta(seconds=60)
_LONGEST_CHARACTER = 4  # bytes, in every encoding of ENCODINGS


class ContentKind(StrEnum):
    """How an answer is read. NONE: not at all (PDF, images, archives, programs)."""

    HTML = "html"
    XML = "xml"
    PLAIN = "plain"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says, cleaned of characters that no database takes. `text` is its main text."""

    title: str = ""
    text: str = ""
    dated: datetime | None = None  # what the page says of itself: last change, else publication
    revised: datetime | None = None  # when it was last changed, in its own JSON-LD
    links: tuple[str, ...] = ()  # absolute http(s) URLs in the main text, in order, one for each place
    heading: str = ""  # the first heading
    refresh: str = ""  # where it sends a browser by itself at once (meta refresh); absolute
    asks_password: bool = False
    cut: bool = False  # its text goes on past what is read


# Types beside text/* whose bytes are text to be read as it stands.
_PLAIN_TYPES = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/x-javascript",
        "application/x-sh",
        "application/sql",
        "application/markdown",
    }
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_XML_TYPES = frozenset({"text/xml", "application/xml"})
_HTML_START = re.compile(
    rb"\s{0,200}(?:<!--.{0,2000}?-->\s{0,200}){0,3}<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_XHTML = re.compile(
    rb"<html\b[^<>]{0,500}\sxmlns\s{0,9}=\s{0,9}[\"']http://www\.w3\.org/1999/xhtml[\"']", re.I
)


def media_type(content_type: str) -> str:
    """`text/html` of `text/html; charset=utf-8`, in lower case; empty when there is none."""
    return content_type[:200].partition(";")[0].strip().lower()


def kind_of(content_type: str, start: bytes | None = None) -> ContentKind:
    """How to read an answer of this type. `start` is its first bytes, None when they are not known yet:
    they decide when no type is given, and tell text from what only claims to be text."""
    kind = _kind_by_type(media_type(content_type))
    if start is None:
        return kind or ContentKind.PLAIN
    if kind is ContentKind.XML and _XHTML.search(start):
        return ContentKind.HTML
    if kind is None or media_type(content_type) == "text/plain":  # as hosts of files send HTML, too
        kind = ContentKind.HTML if _HTML_START.match(start) else ContentKind.PLAIN
    wide = (
        start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _declared(content_type) in _BELIEVED
    )
    if kind is ContentKind.PLAIN and (start.startswith(b"%PDF-") or (b"\0" in start[:1024] and not wide)):
        return ContentKind.NONE
    return kind


def _kind_by_type(name: str) -> ContentKind | None:
    if not name:
        return None
    if name in _HTML_TYPES:
        return ContentKind.HTML
    if name in _XML_TYPES or (name.endswith("+xml") and not name.startswith("image/")):
        return ContentKind.XML
    if name.startswith("text/") or name in _PLAIN_TYPES or name.endswith(("+json", "+yaml")):
        return ContentKind.PLAIN
    return ContentKind.NONE


# --- characters

# The encodings of the web, by the names Python gives them. A label is never looked up beyond these: Python
# also knows codecs that are no encodings of text, such as zlib.
_ENCODINGS = frozenset(
    [
        "utf-8",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "cp1258",
        "cp866",
        "cp874",
        "iso8859-2",
        "iso8859-3",
        "iso8859-4",
        "iso8859-5",
        "iso8859-6",
        "iso8859-7",
        "iso8859-8",
        "iso8859-10",
        "iso8859-13",
        "iso8859-14",
        "iso8859-15",
        "iso8859-16",
        "koi8-r",
        "koi8-u",
        "mac-roman",
        "gb18030",
        "big5",
        "euc_jp",
        "cp932",
        "iso2022_jp",
        "cp949",
    ]
)
# What a label says and what browsers take it for (WHATWG Encoding Standard, section 4.2).
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
_CHARSET = re.compile(r"charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"\s{0,20}<\?xml[^>]{0,100}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_:.-]{1,40})")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Encodings in which other text can look like UTF-8: what was declared is believed.
_BELIEVED = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp"})


def _encoding(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = _READ_AS.get(name, name)
    return name if name in _ENCODINGS else None


def _declared(content_type: str) -> str | None:
    match = _CHARSET.search(content_type[:500])
    return _encoding(match[1]) if match else None


def decode(body: bytes, content_type: str = "") -> str:
    """The characters of `body`: by its byte order mark, else as UTF-8 if it is UTF-8 (servers name the wrong
    charset more often than other text happens to be UTF-8), else by the header, by what the document says of
    itself, or as Windows-1252. What cannot be decoded becomes U+FFFD; a character cut off at the end does not."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _decode(body[len(mark) :], name, "replace") or ""
    own = (pattern.search(body[:2048]) for pattern in (_META_CHARSET, _XML_ENCODING))
    declared = [_declared(content_type), *(_encoding(match[1].decode("ascii")) for match in own if match)]
    names = [name for name in declared if name]
    if not (names and names[0] in _BELIEVED):
        names.insert(0, "utf-8")
    for name in names:
        text = _decode(body, name, "strict")
        if text is not None:
            return text
    return _decode(body, names[1] if len(names) > 1 else "cp1252", "replace") or ""


def _decode(body: bytes, name: str, errors: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)(errors).decode(body)
    except UnicodeError:
        return None


# Not in any text a human reads, and refused by databases or JSON: controls, lone surrogates, non-characters.
_UNCLEAN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Without control characters and lone surrogates; line ends are `\\n`."""
    return _UNCLEAN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, longest: int = TITLE_CHARACTERS) -> str:
    """Cleaned, on one line, cut."""
    return " ".join(clean(text[: longest * 4]).split())[:longest].rstrip()


# A change as `git diff` writes it, with the lines that it takes out.
_CHANGE = re.compile(r"^--- \S.*\n\+\+\+ \S.*\n@@ -\d", re.MULTILINE)
_TAKEN_OUT = re.compile(r"^-.*\n?", re.MULTILINE)


def read_plain(body: bytes, content_type: str) -> Page:
    """Text that needs no parsing; of a change, without what it takes out. A Markdown heading in its first lines is its
    title."""
    enough = TEXT_CHARACTERS * _LONGEST_CHARACTER
    whole = clean(decode(body[:enough], content_type))
    if change := _CHANGE.search(whole):
        whole = whole[: change.start()] + _TAKEN_OUT.sub("", whole[change.start() :])
    text, cut = bounded(whole)
    title = ""
    for line in text[:2000].splitlines()[:20]:
        if line.startswith("# "):
            title = one_line(line[2:])
            break
    return Page(title=title, text=text, heading=title, cut=cut or len(body) > enough)


def bounded(text: str) -> tuple[str, bool]:
    """The text as far as it counts, and whether it went on after that."""
    stripped = text.strip()
    return stripped[:TEXT_CHARACTERS].rstrip(), len(stripped) > TEXT_CHARACTERS


# --- dates


def plausible(moment: datetime | None, now: datetime) -> datetime | None:
    """`moment` in UTC, or None when it is in the future or before there was a web."""
    if moment is None:
        return None
    try:
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        return None
    return aware if EARLIEST <= aware <= now else None


def header_date(value: str) -> datetime | None:
    """A date of an HTTP header; None when it is none."""
    try:
        moment = parsedate_to_datetime(value[:100])
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def last_modified(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """Last-Modified, unless it is the moment of the answer: a server that makes pages on demand says that of
    every page, and it tells nothing of what stands there."""
    moment = plausible(header_date(headers.get("last-modified", "")), now)
    answered = header_date(headers.get("date", "")) or now
    if moment is None or abs(answered - moment) < _JUST_MADE:
        return None
    return moment


# --- what a page only repeats

_FEWEST, _ECHOED = 3, 6  # words in a row; fewer are in any page about the same thing, more may be cut off


def without_echo(page: Page, urls: Iterable[str]) -> Page:
    """The page without the words that its own addresses put into it: "No results for …" says what was asked, not
    what is so. Those are runs of words from the query, or from a part of the path with spaces in it. Linear."""
    echoes: dict[int, set[str]] = {}
    for said in {said for url in urls for said in _sayings(url)}:
        words = RUN.findall(said.casefold())
        length = min(len(words), _ECHOED)
        if length >= _FEWEST:
            echoes.setdefault(length, set()).update(runs(words, length))
    if not echoes:
        return page
    return replace(page, title=_without(page.title, echoes), text=_without(page.text, echoes))


# Parts of a path behind which stands what is looked for, however it is joined. A page elsewhere may well be named for
# what it says: /blog/refunds-take-14-days.
_SEARCHES = frozenset(
    {
        *(
            "busca",
            "buscar",
            "define",
            "explore",
            "find",
            "hashtag",
            "keyword",
            "keywords",
            "label",
            "labels",
            "lookup",
        ),
        *(
            "q",
            "query",
            "recherche",
            "results",
            "s",
            "search",
            "special:search",
            "suche",
            "tag",
            "tagged",
            "tags",
            "zoeken",
        ),
    }
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z\d])|(?<=\d)(?=[A-Z])")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def _sayings(url: str) -> list[str]:
    """What an address says in words of its own choice."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    path = [unquote_plus(part) for part in parts.path.split("/") if part]
    searched = next((path[at + 1 :] for at, part in enumerate(path) if part.lower() in _SEARCHES), [])
    words = [unquote(word) for pair in pairs for word in pair] + searched
    values = " ".join(unquote(value) for _, value in pairs)  # a page may put them one behind the other
    decoded = [text for word in words if (text := _decoded(word))]
    said = (*words, values, " ".join(searched), *(_HUMP.sub(" ", word) for word in words), *decoded)
    return [unquote(each) for each in (*(part for part in path if " " in part), *said)]


def _decoded(word: str) -> str:
    """What it says when it is text in base64; else nothing."""
    if _ENCODED.fullmatch(word) is None:
        return ""
    try:
        padded = word.rstrip("=") + "=" * (-len(word.rstrip("=")) % 4)
        return base64.b64decode(padded.replace("-", "+").replace("_", "/")).decode()
    except ValueError:
        return ""


def _without(text: str, echoed: Mapping[int, set[str]]) -> str:
    places = [match.span() for match in RUN.finditer(text)]
    words = [text[start:end].casefold() for start, end in places]
    echoes = sorted(
        (places[at][0], places[at + length - 1][1])
        for length, known in echoed.items()
        for at, run in enumerate(runs(words, length))
        if run in known
    )
    pieces: list[str] = []
    done = 0
    for start, end in echoes:
        pieces.append(text[done : max(done, start)])
        done = max(done, end)
    return "".join((*pieces, text[done:]))
