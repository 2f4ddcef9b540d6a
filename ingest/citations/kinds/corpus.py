"""Documents of the operator's corpora: `corpus:handbook/policies/leave.md`, the corpus by its name and the file from
its top."""

import re
from collections.abc import Iterator

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.language.normalise import plain_signs

# Of documents, in small letters; a corpus has no others.
ENDINGS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".html", ".htm", ".xhtml")
LONGEST = 500  # characters of a path
NAME = r"[a-z0-9][a-z0-9_-]{0,31}"  # of a corpus
_PREFIX = "corpus:"
_SEGMENT = r"[\w+~@-][\w.+~@-]{0,100}"
_ENDING = "|".join(sorted((re.escape(each) for each in ENDINGS), key=len, reverse=True))
_RUNNING = re.compile(
    rf"(?<![\w/\\.@$%&#~{{}}<>=:|^+-]){_PREFIX}(?P<name>{NAME})/"
    rf"(?P<path>(?:{_SEGMENT}/){{0,30}}[\w+@~-][\w+@.~-]{{0,100}}?(?i:{_ENDING}))(?![\w/\\]|[.+-]\w)"
)
_GIVEN = re.compile(rf"(?:{_PREFIX})?(?P<name>{NAME})/(?P<path>.{{1,{LONGEST}}})", re.DOTALL)
_NOT_IN_NAMES = re.compile(r'[\\:*?#"<>|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


def is_path(path: str) -> bool:
    """Whether a document at this path of a corpus can be cited: no part of it is hidden or leads up, nothing in it
    breaks a line or a store, and no sign in it is read as another."""
    parts = path.split("/")
    return (
        len(path) <= LONGEST
        and path.lower().endswith(ENDINGS)
        and not _NOT_IN_NAMES.search(path)
        and not any(part != part.strip() or not part or part.startswith(".") for part in parts)
        and (path.isascii() or plain_signs(path).text == path)
    )


def key_of(name: str, path: str) -> str:
    """The key of the document at this path of a corpus, which also is how it is cited."""
    return f"{_PREFIX}{name}/{path}"


def parse_key(key: str) -> tuple[str, str] | None:
    """The name of the corpus and the path in it; None for another's key."""
    match = _GIVEN.fullmatch(key) if key.startswith(_PREFIX) else None
    return None if match is None or not is_path(match["path"]) else (match["name"], match["path"])


def _key(match: re.Match[str] | None) -> str | None:
    if match is None or not is_path(match["path"]):
        return None
    return key_of(match["name"], match["path"])


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        if (key := _key(match)) is not None:
            yield FoundCitation(match.start(), match.end(), key)


KIND = CitationKind(
    name=CitationType.CORPUS,
    label="document",
    needles=(_PREFIX,),
    find=_find,
    whole=lambda value: _key(_GIVEN.fullmatch(value)) if value.startswith(_PREFIX) else None,
    bare=lambda value: _key(_GIVEN.fullmatch(value)),
    forms=("corpus:handbook/policies/leave.md",),
)
