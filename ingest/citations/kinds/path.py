"""Files of the repository and lines of them: `docs/guide.md`, `src/auth.py:42`, `docs/guide.md#L10-L20`, also at a
commit (`src/auth.py@4e5d6c7a`).

In running text a path has a slash and an ending of files that people keep in repositories, so that "and/or", "TCP/IP",
1/2 and 2024/01/03 are none, nor are globs, addresses without a scheme, and files outside of a repository. Of the files
at the top those are cited whose names say that they are there, and records by their file names, in brackets or where it
is said that they say it: "(README.md)", "(see pyproject.toml)", "according to README.md", "see 0003-use-queues.md".
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.claims.citation import CitationType

LONGEST = 500  # characters of a path
_ENDINGS = """
    adoc astro bash bat bazel bib bicep bzl c cc cfg clj cljs cmake cmd conf cpp cs csproj css csv cts cxx dart
    dockerfile el erl ex exs fs go gql gradle graphql groovy h hcl hpp hs htm html hxx ini ipynb j2 java jl js json
    json5 jsonc jsonl jsx kt kts less lock lua m markdown md mdx mjs mk ml mli mm mod mts nix php pl plist pm prisma
    properties proto ps1 py pyi pyx r rb rego rs rst sass scala scss sh sln sol sql sum svelte swift tex tf tfvars
    thrift tmpl toml ts tsv tsx txt vb vue xml yaml yml zig zsh
    """
_ENDING = "|".join(sorted(_ENDINGS.split(), key=len, reverse=True))
_NUMBER = r"[1-9]\d{0,6}"
_LINES = (
    rf"(?::(?P<from>{_NUMBER})(?:[-–](?P<to>{_NUMBER})|:\d{{1,5}})?"
    rf"|#L(?P<hash>{_NUMBER})(?:-L?(?P<last>{_NUMBER}))?)"
)
_AFTER = rf"(?:@(?P<commit>[0-9a-f]{{7,40}})(?![0-9A-Za-z]))?(?:{_LINES}(?!\d))?"
_SEGMENT = r"[\w+~@-][\w.+~@-]{0,100}+|\.[\w-][\w.-]{0,100}+"  # one that begins with a dot is hidden, not a dot alone
_RUNNING = re.compile(
    r"(?<![\w/\\.@$%&#~{}<>=:|^+-])(?![@~])(?:\./)?"
    rf"(?P<path>(?:(?:{_SEGMENT})/){{1,30}}[\w+@.~-]{{0,100}}?\.(?:{_ENDING}))"
    rf"(?![\w/\\{{=~]|[.+-]\w|#\d|@(?![0-9a-f]{{7,40}}(?![0-9A-Za-z])))"
    rf"{_AFTER}"
)
# In capitals, or what a tool looks for at the top. "Update README.md" speaks of the file, and does not cite it. And the
# name of a decision record, which lies where records do.
_DOTTED = (
    r"[A-Z][A-Z_-]{2,30}\.(?:adoc|md|rst|txt)|(?:adr)?\d{3,8}[-_][\w-]{2,100}\.(?:adoc|md|rst|txt)|Cargo\.toml|compose\.ya?ml|docker-compose\.ya?ml|go\.mod|package\.json|pyproject\.toml"
    r"|setup\.(?:cfg|py)|tox\.ini"
)
_ENDINGS_AT_TOP = ("adoc", "md", "rst", "txt", "toml", "yml", "yaml", "mod", "json", "cfg", "py", "ini")
_TOP = rf"(?P<path>{_DOTTED}|Dockerfile|LICENSE|Makefile)"
_CITED = re.compile(
    rf"\((?:(?:see|per|from|in|cf\.) )?`?(?P<whole>{_TOP}{_AFTER})(?=(?:#[A-Za-z][\w-]{{0,100}})?`?[),;])"
)
# "According to README.md", "README.md says" and "README.md: …"; of these the ending tells that a file is meant.
_SAID_IN = re.compile(
    rf"\b(?i:according to|as per|per|see|cf\.|sources?:|(?<!as )in) (?:the )?`?(?P<whole>(?P<path>{_DOTTED}){_AFTER})"
    r"(?![\w/-]|\.\w)"
)
_SAYS = re.compile(
    rf"(?<![\w/.-])(?P<whole>(?P<path>{_DOTTED}){_AFTER})`?"
    r" (?:(?:says|states|lists|notes|tells|documents|describes|explains|specifies|records|shows|requires|mentions"
    r"|gives|defines|makes|forbids|allows|names|warns|recommends|sets|asks|promises)\b|v?\d+\.\d+(?:\.\d+)*(?=[ ,]))"
)
_BEFORE_COLON = re.compile(
    rf"(?:(?<![^\n])|(?<=[.!?] ))`?(?P<whole>(?P<path>{_DOTTED}){_AFTER})`?(?: [\w.-]{{1,30}}){{0,4}}:\s"
)
_AT_TOP = re.compile(rf"{_TOP}{_AFTER}")
# One that is given as what it is may be any file, also one at the top.
_NAME = re.compile(r"[^/]*[\w/]\.\w.*|.*/.*|[A-Z][a-z]*file|[A-Z]{4,20}", re.DOTALL)
_NOT_IN_NAMES = r"\\:*?#\"<>|\x00-\x1f\x7f\ud800-\udfff"
_GIVEN = re.compile(rf"(?:\./)?(?P<path>[^\s/{_NOT_IN_NAMES}-][^{_NOT_IN_NAMES}]{{0,{LONGEST}}}?){_AFTER}")
# A host, or the module path of a program, and no directory: `github.com/user/tool/main.go`.
_HOST = re.compile(
    r"[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|ai|co|uk|de|fr|eu|edu|gov|info|app|me|us|ca|cn|ru|nl|ch|se|jp|in|sh|to|xyz"
    r"|cloud|local|internal|invalid|example|test)"
)
_FILE = re.compile(rf".*\.(?:{_ENDING})", re.DOTALL)  # "Node.js/Express.js" are two names
_DOI = re.compile(r"10\.\d{4,9}")
_PLACEHOLDERS = ("path/to/", "a/b/", "foo/bar/")


class PathKey(NamedTuple):
    """What a citation of a file names: the path from the top, a commit (abbreviated), and lines counted from 1, both
    included."""

    path: str
    commit: str | None = None
    first: int | None = None
    last: int | None = None


def parse_key(key: str) -> PathKey | None:
    """The parts of the key of such a citation; None for another's."""
    match = re.fullmatch(
        r"path:(?P<path>[^#]+?)(?:@(?P<commit>[0-9a-f]{7,40}))?(?:#L(?P<first>\d{1,7})-L(?P<last>\d{1,7}))?",
        key,
        re.DOTALL,
    )
    if match is None:
        return None
    first, last = match["first"], match["last"]
    return PathKey(match["path"], match["commit"], int(first) if first else None, int(last) if last else None)


def _key(match: re.Match[str]) -> str | None:
    path = match["path"]
    segments = path.split("/")
    if len(path) > LONGEST or any(segment in ("", ".", "..") for segment in segments):
        return None
    first = match["from"] or match["hash"]
    last = match["to"] or match["last"] or first
    if first and int(last) < int(first):
        return None
    lines = f"#L{first}-L{last}" if first else ""
    return f"path:{path}{'@' if match['commit'] else ''}{match['commit'] or ''}{lines}"


def _reads_as_path(path: str) -> bool:
    directories = path.split("/")[:-1]
    return not (
        _HOST.fullmatch(directories[0])
        or _DOI.fullmatch(directories[0])
        or path.startswith(_PLACEHOLDERS)
        or all(directory.isdecimal() for directory in directories)
        or any(_FILE.fullmatch(directory) for directory in directories)
    )


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        key = _key(match) if _reads_as_path(match["path"]) else None
        if key is not None:
            yield FoundCitation(match.start(), match.end(), key)
    found: set[int] = set()
    for form in (_CITED, _SAID_IN, _SAYS, _BEFORE_COLON):
        for match in form.finditer(text):
            if (key := _key(match)) is not None and match.start("whole") not in found:
                found.add(match.start("whole"))
                yield FoundCitation(*match.span("whole"), key)


def _whole(value: str) -> str | None:
    if at_top := _AT_TOP.fullmatch(value):
        return _key(at_top)
    match = _RUNNING.fullmatch(value)
    return _key(match) if match and _reads_as_path(match["path"]) else None


def _bare(value: str) -> str | None:
    match = _GIVEN.fullmatch(value)
    return _key(match) if match and _NAME.fullmatch(match["path"]) else None


KIND = CitationKind(
    name=CitationType.PATH,
    label="file",
    needles=("/", "(", *(f".{ending}" for ending in _ENDINGS_AT_TOP)),
    find=_find,
    whole=_whole,
    bare=_bare,
    forms=("docs/guide.md", "src/auth.py:42"),
)
