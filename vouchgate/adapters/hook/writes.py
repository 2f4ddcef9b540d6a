"""What a tool call would write, and what of it is new. Pure. Tools are known by name, those of MCP servers too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Unreadable(ValueError):
    """Nobody can say what the call would write; the message is a sentence."""


class Unnamed(Unreadable):
    """Nor to which file."""


class Edit(NamedTuple):
    """`new` in the place of `old`, wherever that stands when `every`; at the end of the file when `old` is empty, and
    in the place of all of it when that is None."""

    old: str | None
    new: str
    every: bool = False


Writes = list[tuple[str, list[Edit]]]  # of each file its edits, in order

# What writes no file, or is a shell, which cannot be looked into.
_LET_BY = re.compile(
    "agent|askuserquestion|bash|bashoutput|directory_tree|exec_command|exitplanmode|get_file_info|glob|"
    "google_web_search|grep|grep_search|killshell|list_directory|list_directory_with_sizes|local_shell|ls|notebookread|"
    "read|read_file|read_many_files|read_media_file|read_multiple_files|read_text_file|run_shell_command|"
    "search_file_content|search_files|shell|shell_command|skill|task|todoread|todowrite|view|view_image|web_fetch|"
    "webfetch|websearch|write_todos"
)
_WRITERS = re.compile("create|create_file|edit|edit_file|multiedit|replace|str_replace|write|write_file")
_BEGIN = "*** Begin Patch"
# The last is no header; what a shell is told after it is no part of the patch.
_HEADER = re.compile(r"\*\*\* (?:(Add File|Update File|Delete File|Move to):(.+)|End Patch.*)")
_PART = re.compile(r"^(?:@@|\*\*\*).*$", re.MULTILINE)
_OWN_LINE = re.compile(r"\s*(?:#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s|>|\|)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARK = re.compile(r"\A\s*(?:#{1,6}|[-*+]|\d{1,9}[.)]|>+)\s+")
_MARKUP = re.compile(r"[-=*_#>|:+`~.\s]*")
_PLAIN_HEADING = re.compile(r"#{1,6}(?:\s+[A-Za-z]{1,24}){1,4}\s*")
_OLD, _NEW = ("old_string", "oldText"), ("new_string", "newText")
MOST_HEADINGS = 8  # plain ones that a write may bring unasked, so that nobody tells a story in headings


def writes_of(tool: str, given: Mapping[str, object]) -> Writes:
    """The edits of each file that a call makes. Raises Unreadable, for a tool that is not known, too."""
    name = re.sub("^mcp__.+?__", "", tool).lower()
    patches = list(_patches(given))  # Codex takes them from its shell, too
    if tool == "apply_patch" and not patches:
        raise Unreadable("it has no patch where one is known to stand")
    if tool == "apply_patch" or _LET_BY.fullmatch(name):
        return [write for text in patches for write in _patch(text)]
    if name == "save_memory":  # of Gemini CLI, which appends it to its memory file
        return [("~/.gemini/GEMINI.md", [Edit("", _text(given, "fact"))])]
    if not _WRITERS.fullmatch(name):
        raise Unreadable(f"{tool} is no tool that is known here")
    kinds = ["content" in given, "edits" in given, any(key in given for key in (*_OLD, *_NEW))]
    if patches or sum(kinds) > 1:
        raise Unreadable("it has what belongs to more than one kind of write")
    path, listed = _text(given, "file_path", "path"), given.get("edits")
    if "content" in given:
        return [(path, [Edit(None, _text(given, "content"))])]
    return [(path, [_edit(part) for part in (listed if isinstance(listed, list) else [given])])]


def paths(value: object) -> Iterator[str]:
    """What may be a path in what a tool is given, however deep it stands, and in a patch."""
    if isinstance(value, str):
        yield from (path for _, path, _ in _hunks(value) if path) if "\n" in value else [value]
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from paths(each)


def _edit(part: object) -> Edit:
    old, new = _text(part, *_OLD), _text(part, *_NEW)
    every = ("replace_all", "allow_multiple", "expected_replacements")
    return Edit(old, new, isinstance(part, dict) and any(map(part.get, every)))


def _text(given: object, *keys: str) -> str:
    found = [given[key] for key in keys if key in given] if isinstance(given, Mapping) else []
    if len(found) != 1 or not isinstance(found[0], str):
        raise Unreadable(f"it has no {keys[0]}, or not as a text")
    return found[0]


def _patches(given: Mapping[str, object]) -> Iterator[str]:
    for value in map(given.get, ("command", "cmd", "input")):
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and _BEGIN in text:
                yield text


def _hunks(text: str) -> list[tuple[str, str, list[str]]]:
    """What a patch does to each file, the file's path, and the lines from that header on. White space around a header
    is nothing, as Codex reads it."""
    hunks: list[tuple[str, str, list[str]]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if header := _HEADER.fullmatch(line.strip()):
            hunks.append((header[1] or "", (header[2] or "").strip(), [line]))
        elif hunks:
            hunks[-1][2].append(line)
    return hunks


def _patch(text: str) -> Writes:
    """The edits in a patch of Codex: `*** Update File: PATH`, then parts that begin with @@, of whole lines after a
    space, + or -."""
    hunks = _hunks(text)
    kinds = [kind for kind, _, _ in hunks]
    if not any(kinds):
        raise Unnamed("it has a patch in which no line says which file it is for")
    if "Move to" in kinds:
        raise Unreadable("a patch that moves a file cannot be followed: write the file anew")
    if any(
        kind == "Update File" and lines[0][0] == " "
        for kind, (_, _, lines) in zip(kinds, hunks[1:], strict=False)
    ):
        raise Unreadable("the patch has a line that may be one of the file, or where another file begins")
    writes: Writes = []
    for kind, path, (_, *lines) in (hunk for hunk in hunks if hunk[0]):
        edits = []
        for part in filter(None, (part.strip("\n") for part in _PART.split("\n".join(lines)))):
            if any(line[:1] not in " -+" for line in part.split("\n")):
                raise Unreadable("the patch has a line that begins with no sign")
            old = "".join(f"\n{line[1:]}" for line in part.split("\n") if line[:1] in " -")
            new = "".join(f"\n{line[1:]}" for line in part.split("\n") if line[:1] in " +")
            edits.append(Edit(None if kind == "Add File" else old and f"{old}\n", f"{new}\n"))
        writes.append((path, edits))
    return writes


def after(before: str, edits: list[Edit]) -> str:
    """The text that a file has after the edits. Raises Unreadable when they do not go with what is there."""
    text = f"\n{before}\n"  # so that a patch finds whole lines
    for old, new, every in edits:
        if old and (text.count(old) == 0 or (text.count(old) > 1 and not every)):
            raise Unreadable("what is to be replaced does not stand in the file, or not only once")
        text = f"\n{new}\n" if old is None else text.replace(old, new) if old else f"{text}\n{new}\n"
    return text


def added(before: str, later: str) -> list[str]:
    """What `later` says that `before` does not: paragraphs, list items, table rows, headings and blocks of code, each
    whole, so that a word that is changed brings its sentence along. Without what is only markup."""
    known = set(_blocks(before))
    fresh = [block for block in dict.fromkeys(_blocks(later)) if block not in known]
    plain = {block for block in fresh if _PLAIN_HEADING.fullmatch(block)}
    unasked = plain if len(plain) <= MOST_HEADINGS else set()
    said = (_MARK.sub("", block, count=1) for block in fresh if block not in unasked)
    return [text for text in said if not _MARKUP.fullmatch(text)]


def _blocks(text: str) -> Iterator[str]:
    lines: list[str] = []
    code = False
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        fence = _FENCE.match(line) is not None
        ends = fence or not line.strip() or _OWN_LINE.match(line) or (lines and lines[0].lstrip()[:1] == "#")
        if lines and ends and not code:
            yield " ".join(" ".join(lines).split())
            lines = []
        if code or line.strip():
            lines.append(line)
            code ^= fence
            if fence and not code:
                yield "\n".join(lines)
                lines = []
    if lines:
        yield "\n".join(lines)
