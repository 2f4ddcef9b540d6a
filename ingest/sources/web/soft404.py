"""Whether what was answered is the page that was asked for: redirects to start, error, log-in and parking pages,
and pages that say "200" and mean "no". Pure; the words are `ingest/data/soft404.toml`.

Doubt goes to the page: a redirect or a phrase counts only where no real page would have it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from urllib.parse import parse_qsl, unquote, urlsplit

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.words import RUN
from vouchgate.ingest.scoring.sites import host_of, registrable_domain
from vouchgate.ingest.sources.web.page import Page

SHORT = 1_500  # characters of main text: longer pages are about something
VERY_SHORT = 400
_MOST_SEGMENTS = 50

_VERSION = re.compile(r"v?\d{1,2}(?:\.(?:\d{1,4}|x)){0,3}")
_REGION = re.compile(r"[-_][a-z0-9]{2,4}")
_PARKED_LABEL = re.compile(r"ww\d{1,2}")  # ww25.example.com: where parking services keep a domain's visitors
_TITLE_PARTS = re.compile(r"[|:·•–—»«>!?…]|\s-\s|\.(?:\s|$)")
_ABOUT_DOMAINS = frozenset(
    {"domain", "domains", "parked", "parking"}
)  # an address of a page about such pages
_APOSTROPHES = str.maketrans("", "", "'’ʼ`´")


class AnswerKind(StrEnum):
    """What an answer is."""

    PAGE = "page"  # what was asked for, as far as can be told
    HOME = "home"  # a start page in its place
    NOT_FOUND = "not_found"
    PARKED = "parked"
    LOGIN = "login"
    WALL = "wall"  # it wants a human, a browser or consent first
    NEEDS_SCRIPT = "needs_script"  # it is the page, but says nothing without a browser


class Soft404Words(Frozen):
    """The lists of soft404.toml, which says what each is for."""

    index_names: frozenset[str]
    languages: frozenset[str]
    versions: frozenset[str]
    idle_parameters: frozenset[str]
    forwarders: frozenset[str]
    error_segments: frozenset[str]
    login_segments: frozenset[str]
    login_chapters: frozenset[str]
    login_labels: frozenset[str]
    return_parameters: frozenset[str]
    parking_domains: frozenset[str]
    openers: frozenset[str]
    not_found: frozenset[str]
    not_found_words: frozenset[str]
    not_found_numbers: frozenset[str]
    about_not_found: frozenset[str]
    parked: tuple[str, ...]
    login: frozenset[str]
    wall: frozenset[str]
    needs_script: tuple[str, ...]


@cache
def load_words() -> Soft404Words:
    """The built-in lists."""
    return Soft404Words.model_validate(read_data("soft404.toml"))


# --- where it led


@dataclass(frozen=True, slots=True)
class _Address:
    """What tells one page from another. `segments` are the parts of the path in lower case, the file ending cut
    off the last."""

    host: str
    segments: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]


def judge_move(asked: str, final: str, words: Soft404Words) -> AnswerKind:
    """What a redirect from `asked` to `final` says, by the addresses alone. PAGE when there was none.

    http to https, www, a slash, another language or version, a new path and a new host are all the page; and a
    log-in or error page that was asked for by its address is a page.
    """
    old, new = _address(asked), _address(final)
    if old is None or new is None or old == new:
        return AnswerKind.PAGE
    if _is_parked(old, new, words):
        return AnswerKind.PARKED
    if _asks_to_sign_in(old, new, words):
        return AnswerKind.LOGIN
    if words.error_segments.issuperset(new.segments[-1:] or ("",)) and words.error_segments.isdisjoint(
        old.segments
    ):
        return AnswerKind.NOT_FOUND
    went_home = _is_home(new, words) and not _is_home(old, words) and not _moved_there(old, new, words)
    return AnswerKind.HOME if went_home else AnswerKind.PAGE


def _address(url: str) -> _Address | None:
    try:
        parts = urlsplit(url)
        parameters = parse_qsl(parts.query[:4000], keep_blank_values=True, max_num_fields=200)
    except ValueError:  # no URL, or too many parameters to be looked through
        return None
    segments = [
        unquote(part).lower() for part in parts.path.split("/", _MOST_SEGMENTS)[:_MOST_SEGMENTS] if part
    ]
    if segments and not _VERSION.fullmatch(segments[-1]):
        stem, dot, ending = segments[-1].rpartition(".")
        segments[-1] = stem if dot and stem and len(ending) <= 5 else segments[-1]
    return _Address(host_of(url), tuple(segments), tuple(parameters))


def _is_parked(old: _Address, new: _Address, words: Soft404Words) -> bool:
    domain = registrable_domain(new.host)
    if domain in words.parking_domains:
        return registrable_domain(old.host) != domain
    return bool(_PARKED_LABEL.fullmatch(_first_label(new))) and old.host != new.host


def _is_home(address: _Address, words: Soft404Words) -> bool:
    """A path of nothing but language, version and index names, and no parameter that names a page."""
    for segment in address.segments:
        language = segment[:2] in words.languages and (len(segment) == 2 or _REGION.fullmatch(segment[2:]))
        if not (
            language
            or segment in words.versions
            or segment in words.index_names
            or _VERSION.fullmatch(segment)
        ):
            return False
    return all(name.lower() in words.idle_parameters for name, _ in address.parameters)


def _moved_there(old: _Address, new: _Address, words: Soft404Words) -> bool:
    """The page has become a site of its own: example.org/tool is now tool.example.org, or tool.example."""
    labels = set(new.host.split(".")).difference(old.host.split("."))
    return old.host in words.forwarders or not labels.isdisjoint(old.segments)


def _asks_to_sign_in(old: _Address, new: _Address, words: Soft404Words) -> bool:
    asked_for = words.login_segments | words.login_labels
    if not asked_for.isdisjoint((*old.segments, _first_label(old))):
        return False
    at_the_door = new.host != old.host and _first_label(new) in words.login_labels
    if at_the_door or _at_the_end(new, words.login_segments):
        return True
    comes_back = any(value and name.lower() in words.return_parameters for name, value in new.parameters)
    return comes_back and not (words.login_segments | words.login_chapters).isdisjoint(new.segments)


def _at_the_end(address: _Address, names: frozenset[str]) -> bool:
    return not names.isdisjoint(address.segments[-1:])


def _first_label(address: _Address) -> str:
    return address.host.partition(".")[0]


# --- what it says


def judge_page(asked: str, page: Page, words: Soft404Words) -> AnswerKind:
    """What a page that was answered with 2xx is, by its own words. `asked` is the address that was cited."""
    size = len(page.text)
    if size >= SHORT:
        return AnswerKind.PAGE
    named = _named(asked)
    first = page.text[:200].partition("\n")[0] if size < VERY_SHORT else ""
    said = _phrases((page.title, page.heading, first), named)
    everything = f" {_plain(f'{page.title} | {page.heading} | {page.text}')} "
    look = AnswerKind.PAGE
    if _says_any(everything, words.parked) and named.isdisjoint(_ABOUT_DOMAINS):
        look = AnswerKind.PARKED
    elif _says_not_found(said, size, named, words):
        look = AnswerKind.NOT_FOUND
    elif not said.isdisjoint(words.wall):
        look = AnswerKind.WALL
    elif _says_sign_in(said, page, named, words):
        look = AnswerKind.LOGIN
    elif size < VERY_SHORT and _says_any(everything, words.needs_script):
        look = AnswerKind.NEEDS_SCRIPT
    return look


def _says_sign_in(said: frozenset[str], page: Page, named: frozenset[str], words: Soft404Words) -> bool:
    if said.isdisjoint(words.login) or not named.isdisjoint(words.login_segments):
        return False
    return page.asks_password or len(page.text) < VERY_SHORT


def _phrases(lines: tuple[str, ...], named: frozenset[str]) -> frozenset[str]:
    """What the lines and their parts say, without what the address that was asked for says as well."""
    parts = [part for line in lines for part in (line, *_TITLE_PARTS.split(line))]
    return frozenset(
        plain for part in parts if (plain := _plain(part)) and not named.issuperset(plain.split())
    )


def _says_not_found(said: frozenset[str], size: int, named: frozenset[str], words: Soft404Words) -> bool:
    about_it = words.not_found_numbers | words.about_not_found
    if not named.isdisjoint(about_it) or named >= {"not", "found"}:
        return False
    for plain in said:
        bare = _without_openers(plain, words.openers)
        if bare in words.not_found:
            return True
        number_alone = not bare and not words.not_found_numbers.isdisjoint(plain.split())
        if size < VERY_SHORT and (number_alone or bare in words.not_found_words):
            return True
    return False


def _plain(text: str) -> str:
    """Words in lower case with one space between, apostrophes gone: `cant find it`."""
    folded = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    return " ".join(RUN.findall(folded))


def _without_openers(plain: str, openers: frozenset[str]) -> str:
    """Without `oops`, `error`, `404` and the like before it; empty when it is nothing else."""
    words = plain.split()
    while words:
        longest = next((count for count in (3, 2, 1) if " ".join(words[:count]) in openers), 0)
        if not longest:
            break
        words = words[longest:]
    return " ".join(words)


def _says_any(text: str, phrases: tuple[str, ...]) -> bool:
    return any(f" {phrase} " in text for phrase in phrases)


def _named(asked: str) -> frozenset[str]:
    """The words of the address that was asked for."""
    try:
        path = urlsplit(asked).path
    except ValueError:
        return frozenset()
    return frozenset(RUN.findall(unquote(path[:2000]).lower()))
