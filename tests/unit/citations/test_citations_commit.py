"""Commit citations in sentences, and hex digits that are none."""

import pytest

from vouchgate.ingest.citations import detect_citations

FULL = "9c1d8e3f2a7b6054d3e2f1a0b9c8d7e6f5a4b3c2"


def commits(text: str) -> list[str]:
    found = detect_citations(text)
    assert {citation.type for citation in found} <= {"commit", "path"}  # a path may hold hex
    return [citation.value for citation in found if citation.type == "commit"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Broken since 9c1d8e3.", ["9c1d8e3"]),
        ("9c1d8e3 broke it.", ["9c1d8e3"]),
        ("9c1d8e3: parser: accept tabs", ["9c1d8e3"]),
        ("`9c1d8e3` and **3f2a7b6**", ["9c1d8e3", "3f2a7b6"]),
        ("9c1d8e3's message", ["9c1d8e3"]),
        ("9c1d8e3\u2019s message", ["9c1d8e3"]),
        (f"This reverts commit {FULL}.", [FULL]),
        (f"(cherry picked from commit {FULL})", [FULL]),
        (f"SHA1 of the commit: commit {FULL}", [FULL]),
        ('Fixes: 9c1d8e3f2a7b ("mm: keep the page locked")', ["9c1d8e3f2a7b"]),
        ("In 9c1d8e3f2a (refs: split the backend, 2021-05-06) we moved it", ["9c1d8e3f2a"]),
        ("git log 9c1d8e3..3f2a7b6", ["9c1d8e3", "3f2a7b6"]),
        ("git diff 9c1d8e3...3f2a7b6", ["9c1d8e3", "3f2a7b6"]),
        ("between 9c1d8e3\u20133f2a7b6", ["9c1d8e3", "3f2a7b6"]),
        ("git show 9c1d8e3^ 3f2a7b6~2 0b9c8d7:Makefile", ["9c1d8e3", "3f2a7b6", "0b9c8d7"]),
        ("uses: acme/setup@9c1d8e3f2a7b", ["9c1d8e3f2a7b"]),
        ("Merge: 9c1d8e3 3f2a7b6", ["9c1d8e3", "3f2a7b6"]),
        ("commit:9c1d8e3", ["9c1d8e3"]),
        ("at rev=9c1d8e3", ["9c1d8e3"]),
        ("the error 9c1d8e3 introduced is gone", ["9c1d8e3"]),
        ("We dropped the index. 9c1d8e3 restored it.", ["9c1d8e3"]),
        ("commit 12345678 has only digits", ["12345678"]),
        ("Commits 12345678 and 23456789 clash", ["12345678", "23456789"]),
        ("commit `2345678`", ["2345678"]),
        ("commit id 9c1d8e3", ["9c1d8e3"]),
        ("commit 9C1D8E3", ["9C1D8E3"]),
        ("commit 1e23456 is no number", ["1e23456"]),
        ("commit d41d8cd98f00b204e9800998ecf8427e", ["d41d8cd98f00b204e9800998ecf8427e"]),
        ("github.com/acme/tool/commit/9c1d8e3", ["9c1d8e3"]),
        ("(9c1d8e3)", ["9c1d8e3"]),
        ("bisected to 9c1d8e3", ["9c1d8e3"]),
        ("9c1d8e3, 3f2a7b6", ["9c1d8e3", "3f2a7b6"]),
        ("コミット9c1d8e3を参照", ["9c1d8e3"]),
    ],
)
def test_commit(text: str, values: list[str]) -> None:
    assert commits(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "The facade was defaced; feedbee and deadbee are words.",
        "Colours #9c1d8e3f and #3f2a7b.",
        "sha256:9c1d8e3f2a7b6054 is pulled",
        f"sha1: {FULL}",
        f"SHA-1 of the archive: {FULL}",
        f"The checksum is {FULL}",
        "9c1d8e3f2a is the digest",
        "md5 9c1d8e3f2a7b60549c1d8e3f2a7b6054",
        "9c1d8e3f2a7b60549c1d8e3f2a7b6054 is 32 long",
        "request 123e4567-e89b-12d3-a456-426614174000 failed",
        "0x7ffd3a2c11 and 0x80004005",
        "job_9c1d8e3f2a and 9c1d8e3f2a_old and x9c1d8e3f2a",
        "assets/main-9c1d8e3f.js, app.9c1d8e3f.css, 9c1d8e3f.patch",
        "/objects/9c/1d8e3f2a7b6054d3e2f1a0b9c8d7e6f5a4b3c2",
        f"{FULL}9 has 41 digits",
        "built on 20240926 from 2024092",
        "20240926b is the nightly",
        "1e10000 overflows, so does 1234567e10",
        "index 9c1d8e3..3f2a7b6 100644",
        "the null id 0000000000000000000000000000000000000000",
        "commit 0000000000000000000000000000000000000000",
        "tree 9c1d8e3f2a, blob 3f2a7b6054",
        "container 9c1d8e3f2a7b stopped",
        "image: 9c1d8e3f2a7b",
        'the session id is "9c1d8e3f2a"',
        '{"token": "9c1d8e3f2a7b"}',
        "token=9c1d8e3f2a7b",
        "v0.0.0-20190102150405-9c1d8e3f2a7b",
        "v2.1-14-g9c1d8e3",
        "<20190102.9c1d8e3f@mail.example>",
        "status c0000005",
        "kernel at ffffffff81000a00, offset 000000a0",
        "error code 8007000e",
        "9C1D8E3F2A7B is a serial",
        "digits 0123456789abcdef",
        "MAC 00:1a:2b:3c:4d:5e and 2001:db8:85a3::8a2e:370:7334",
        "aGVsbG8+9c1d8e3f2a7b=",
        "%9c1d8e3f",
        "we commit 5000000 rows a day",
        "follow-up 1234567 was mailed",
        "$9c1d8e3f2a",
    ],
)
def test_not_a_commit(text: str) -> None:
    assert commits(text) == []
