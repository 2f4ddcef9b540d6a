"""Paths of files and their lines, told from everything else that has a slash."""

from __future__ import annotations

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.citations import detect_citations, given_citation, parse_citation
from vouchgate.ingest.citations.kinds.path import PathKey, parse_key


def paths(text: str) -> list[tuple[str, str]]:
    found = [citation for citation in detect_citations(text) if citation.type == "path"]
    assert all(text[one.start : one.end] == one.value for one in found)
    return [(one.value, one.key.removeprefix("path:")) for one in found]


@pytest.mark.parametrize(
    ("text", "value", "key"),
    [
        ("Retries are in src/retry.py:42.", "src/retry.py:42", "src/retry.py#L42-L42"),
        ("(see `src/retry.py:40-52`)", "src/retry.py:40-52", "src/retry.py#L40-L52"),
        ("src/retry.py:40:7: too long", "src/retry.py:40:7", "src/retry.py#L40-L40"),
        ("docs/guide.md#L10-L20, again", "docs/guide.md#L10-L20", "docs/guide.md#L10-L20"),
        ("[guide](docs/guide.md#L7)", "docs/guide.md#L7", "docs/guide.md#L7-L7"),
        ("per docs/guide.md.", "docs/guide.md", "docs/guide.md"),
        ("**docs/guide.md**: read it", "docs/guide.md", "docs/guide.md"),
        ("“./docs/guide.md”", "./docs/guide.md", "docs/guide.md"),
        ("docs/guide.md's third part", "docs/guide.md", "docs/guide.md"),
        ("docs/guide.md#limits", "docs/guide.md", "docs/guide.md"),
        ("src/retry.py@4e5d6c7a has it", "src/retry.py@4e5d6c7a", "src/retry.py@4e5d6c7a"),
        ("src/retry.py@4e5d6c7a:9-11", "src/retry.py@4e5d6c7a:9-11", "src/retry.py@4e5d6c7a#L9-L11"),
        ("docs/adr/0015-bulk-data.md says so", "docs/adr/0015-bulk-data.md", "docs/adr/0015-bulk-data.md"),
        ("in .github/workflows/ci.yml now", ".github/workflows/ci.yml", ".github/workflows/ci.yml"),
        ("MyApp.Core/Program.cs", "MyApp.Core/Program.cs", "MyApp.Core/Program.cs"),
        ("a/b.test.ts", "a/b.test.ts", "a/b.test.ts"),
        ("docs/grüße.md", "docs/grüße.md", "docs/grüße.md"),
        ("packages/@acme/x/index.ts", "packages/@acme/x/index.ts", "packages/@acme/x/index.ts"),
        ("Files have 5 MB (README.md).", "README.md", "README.md"),
        ("5 MB (see `CONTRIBUTING.md:12-14`)", "CONTRIBUTING.md:12-14", "CONTRIBUTING.md#L12-L14"),
        ("[limits](README.md#limits) of files", "README.md", "README.md"),
        ("Python 3.11 (pyproject.toml, the first table)", "pyproject.toml", "pyproject.toml"),
        ("one target (Makefile:3; also said there)", "Makefile:3", "Makefile#L3-L3"),
        ("According to README.md, it is a pilot.", "README.md", "README.md"),
        ("It went in May. Source: `CHANGELOG.md`", "CHANGELOG.md", "CHANGELOG.md"),
        ("See pyproject.toml:12.", "pyproject.toml:12", "pyproject.toml#L12-L12"),
        ("CHANGELOG.md says that it went.", "CHANGELOG.md", "CHANGELOG.md"),
        ("CHANGELOG.md 2.2.0: it went.", "CHANGELOG.md", "CHANGELOG.md"),
        ("CHANGELOG.md v2.2.0 took it out.", "CHANGELOG.md", "CHANGELOG.md"),
        ("README.md forbids what went before.", "README.md", "README.md"),
        ("It is so. `README.md`: it is a pilot.", "README.md", "README.md"),
        ("Uploads wait (see 0003-use-queues.md).", "0003-use-queues.md", "0003-use-queues.md"),
        ("As per adr003_use_queues.md:9, they wait.", "adr003_use_queues.md:9", "adr003_use_queues.md#L9-L9"),
        ("They wait, see `20240103-use-queues.md`.", "20240103-use-queues.md", "20240103-use-queues.md"),
    ],
)
def test_a_path(text: str, value: str, key: str) -> None:
    assert paths(text) == [(value, key)]
    assert parse_citation(value).key == given_citation("path", value).key == f"path:{key}"


@pytest.mark.parametrize(
    "text",
    [
        "and/or, I/O, TCP/IP, client/server, 1/2 and 24/7",
        "on 2024/01/03, at 10/12.5 of 3/4.txt",
        "https://example.com/docs/guide.md and example.com/docs/guide.md",
        "github.com/acme/tool/main.go",
        "ssh://host/src/retry.py and git@host:acme/tool.rb",
        "/etc/hosts.conf, ~/notes/a.md, ../up/a.md, C:\\src\\a.py, $HOME/src/a.py, @acme/ui/index.js",
        "src/*.py, **/retry.py, docs/{a,b}/c.md, docs/<name>/c.md",
        "Node.js/Vue.js",
        "v1.2/3.4, text/html, application/json, image/svg+xml",
        "src/retry.py.bak, docs/guide.md/, docs/guide.md-old, lib/x.so.1",
        "path/to/file.py",
        "retry.py:42, main.go and Makefile:3",
        "Update README.md and [README.md](https://example.com/x) (and CHANGELOG.md), (retry.py) (REDIS) (Readme.md)",
        "README.md (the first), (README.md.bak), (SETUP.py), (README.md/x) and f(LICENSE_KEY)",
        "edit README.md: a typo, README.md is long, as in README.md, see README.md.bak, per Vue.js",
        "docs/guide.md#123",
        "10.1145/3292500.js",
        "src/retry",
    ],
)
def test_not_a_path(text: str) -> None:
    assert paths(text) == []


def test_an_issue_of_a_repository_that_is_called_like_a_file_stays_one() -> None:
    assert [(one.type, one.value) for one in detect_citations("Fixed by acme/tool.js#12")] == [
        ("issue", "acme/tool.js#12")
    ]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("README.md:12", "README.md#L12-L12"),
        ("Makefile", "Makefile"),
        ("LICENSE", "LICENSE"),
        ("docs/my notes.md", "docs/my notes.md"),
        ("app/[id]/page.xyz", "app/[id]/page.xyz"),
        ("docs/guide", "docs/guide"),
    ],
)
def test_one_that_is_given_may_be_any_file(value: str, key: str) -> None:
    assert given_citation("path", value).key == f"path:{key}"


@pytest.mark.parametrize(
    "value",
    [
        *("", "/etc/hosts", "../a.md", "a/../b.md", "a//b.md", "a/./b.md", "a\\b.md", "src/*.py", "docs/"),
        *(
            "a/b.md:9-3",
            "a/b.md:0",
            "a\nb/c.md",
            "a/" * 300 + "b.md",
            "-x/a.md",
            "https://x/a.md",
            "\ud800/a.md",
        ),
    ],
)
def test_one_that_leaves_the_repository_or_is_none_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="not one path citation"):
        given_citation("path", value)


def test_the_key_has_all_its_parts() -> None:
    assert parse_key("path:a/b.py@4e5d6c7a#L9-L11") == PathKey("a/b.py", "4e5d6c7a", 9, 11)
    assert parse_key("path:packages/@acme/x.ts") == PathKey("packages/@acme/x.ts")
    assert parse_key("adr:3") is None


@pytest.mark.parametrize(
    "text",
    ["a/" * 50_000, "a.b/" * 50_000, "x" * 200_000, "a-" * 100_000, ("a/" * 29 + "b" * 90 + ".q ") * 1_000],
)
def test_a_hostile_text_takes_no_long(text: str) -> None:
    with given_up_after(5):
        assert paths(text) == []
