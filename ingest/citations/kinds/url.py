"""URLs with a scheme: `https://example.com/a`. No bare domains, no ftp:, ssh: or mailto:.

linkify-it-py says where a URL ends. What it gets wrong in prose is put right here: closing curly quotes,
`**`, back-ticks, IPv6 hosts, ideographic full stops, double quotes and back-slashes of JSON, HTML entities.
"""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from linkify_it import LinkifyIt

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.citations.shared import trim_end
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.language.normalise import INVISIBLE

_LINKIFY = LinkifyIt(options={"fuzzy_link": False, "fuzzy_email": False})

# What ends a URL for certain: white space, controls, quotes, brackets of mark-up, CJK punctuation, dashes.
_STOP = (
    '\\s\\x00-\\x1f\\x7f-\\x9f<>"`|\\\\“”„‘’‚«»‹›—…\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65'
    + INVISIBLE
)
_RUN = re.compile(rf"[^{_STOP}]+")
# After a letter, a digit or `+` it is the tail of another scheme (git+https); `_` opens emphasis.
_SCHEME = re.compile(r"(?<![A-Za-z0-9+])https?:(?=//)", re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_HOST = re.compile(r"https?://(?:[^@/?#]{1,50}@)?(?P<host>\[[^\]]+\]|[^\W_][\w.-]*)", re.IGNORECASE)
_IPV6 = re.compile(r"(?<=[/@])\[[0-9A-Fa-f:.]{2,45}\]")
_NEXT = re.compile(r"[,;'](?=https?://)|&(?:gt|lt|quot);", re.IGNORECASE)  # one URL ends, another may begin


def _hide_ipv6(match: re.Match[str]) -> str:
    """linkify knows no bracketed hosts, so it is shown a name of the same length."""
    try:
        ipaddress.IPv6Address(match[0][1:-1])
    except ValueError:
        return match[0]
    return "a" * len(match[0])


def _windows(run: str) -> Iterator[tuple[int, int]]:
    """Cuts a run of URL characters where no URL can go on, so that no stretch is scanned twice.

    Cuts are before a separator and the next scheme, and before an opening bracket that is never closed:
    linkify would look for its closer to the end of the text, once for every URL.
    """
    cuts = {match.start() for match in _NEXT.finditer(run)}
    for opener, closer in ("()", "[]", "{}"):
        position = run.find(opener, run.rfind(closer) + 1)
        while position >= 0:
            cuts.add(position)
            position = run.find(opener, position + 1)
    start = 0
    for cut in sorted(cuts):
        yield start, cut
        start = cut
    yield start, len(run)


def _end(run: str, start: int, end: int) -> int:
    """Where the URL that linkify saw at `start` really ends."""
    before = run[start - 1] if start else ""
    if before == "'":
        quote = run.find("'", start, end)
        end = quote if quote >= 0 else end
    end = trim_end(run, start, end)
    if run[end : end + 1] == "*" and run[end : end + 2] != "**" and run[end - 1] == "/" and before != "*":
        end += 1  # https://example.com/* is a pattern, *https://example.com/* is emphasis
    if before == "_":
        end = trim_end(run, start, start + len(run[start:end].rstrip("_")))
    return end


def _stretches(text: str) -> Iterator[re.Match[str]]:
    """The runs of URL characters that have a scheme in them."""
    at = 0
    while (place := text.find("://", at)) >= 0:
        begin = max(at, text.rfind(" ", at, place))
        run = next(run for run in _RUN.finditer(text, begin) if run.end() > place)
        yield run
        at = run.end()


def _find(text: str) -> Iterator[FoundCitation]:
    for stretch in _stretches(text):
        run = stretch[0]
        shown = _IPV6.sub(_hide_ipv6, run) if "/[" in run or "@[" in run else run
        for left, right in _windows(shown):
            window = shown[left:right]
            position = 0
            while (scheme := _SCHEME.search(window, position)) is not None:
                length = _LINKIFY.test_schema_at(window, "http:", scheme.end())
                start, end = (
                    left + scheme.start(),
                    _end(run, left + scheme.start(), left + scheme.end() + length),
                )
                position = max(scheme.end(), end - left)
                key = _whole(run[start:end]) if length else None
                if key is not None:
                    yield FoundCitation(stretch.start() + start, stretch.start() + end, key)


def other_schemes(text: str) -> Iterator[tuple[int, int]]:
    """Where URLs of schemes that are not cited stand (ssh, ftp): nothing in them is a citation."""
    for stretch in _stretches(text):
        scheme = _ANY_SCHEME.search(stretch[0])
        if scheme is not None:
            yield stretch.start() + scheme.start(), stretch.end()


def _key(url: str) -> str:
    """Scheme and host in lower case; the rest stays, the fragment too: it names the comment of a thread."""
    match = _HOST.match(url)
    if match is None:
        return f"url:{url}"
    scheme, rest = url.split(":", 1)
    offset = len(scheme) + 1
    host_start, host_end = match.span("host")
    return f"url:{scheme.lower()}:{rest[: host_start - offset]}{match['host'].lower()}{url[host_end:]}"


def _whole(value: str) -> str | None:
    if not re.fullmatch(r"https?://[^\s\x00-\x1f<>]+", value, re.IGNORECASE):
        return None
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises when it is no number up to 65535
    except ValueError:
        return None
    return _key(value) if parts.hostname and _HOST.match(value) else None


KIND = CitationKind(
    name=CitationType.URL,
    label="web page",
    needles=("://",),
    find=_find,
    whole=_whole,
    bare=_whole,
    forms=("https://example.com/page",),
)
