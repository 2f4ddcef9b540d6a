"""How often checks alarm on texts that nobody wrote for them: docs, docstrings and comments of the packages that are
installed beside this one, what the last commits say, and the texts of JSONL files that are named.

Packages are split in two halves by their names: rules are made by looking at one, and the other is only counted.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench.claims import claim_of
from vouchgate.ingest.check import ReadClaim
from vouchgate.ingest.checks import hidden, instruction
from vouchgate.ingest.checks.personal import KINDS, PersonalDataDetector
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS

MOST = 400  # texts of one package, drawn by a fixed seed, so that none outweighs the others
_DOCS = {".md", ".rst", ".txt"}
_IN_CODE = re.compile(r'"""(.+?)"""|((?:^[ \t]*#[^\n]*\n)+)', re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#[ \t:!]*", re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n\s*\n")

Alarms = Callable[[str], Iterable[str]]


def texts_of_packages() -> Iterator[tuple[str, str]]:
    """Each package, and a text of it of 20 to 8,192 characters."""
    for folder in sorted(Path(sysconfig.get_paths()["purelib"]).iterdir()):
        if not folder.is_dir() or folder.name.startswith(("vouchgate", "__")):
            continue
        found: dict[str, None] = {}
        for file in sorted(folder.rglob("*")):
            if not file.is_file() or file.stat().st_size > 1_000_000:
                continue
            if file.suffix in _DOCS or file.name == "METADATA":
                pieces = _PARAGRAPHS.split(file.read_text("utf-8", "replace"))
            elif file.suffix == ".py":
                code = file.read_text("utf-8", "replace")
                pieces = [doc or _COMMENT.sub("", comment) for doc, comment in _IN_CODE.findall(code)]
            else:
                continue
            found.update(dict.fromkeys(each.strip() for each in pieces))
        texts = [each for each in found if 20 <= len(each) <= MAX_CONTENT_CHARACTERS]
        chosen = random.Random(folder.name).sample(texts, min(MOST, len(texts)))
        yield from ((folder.name.partition("-")[0], text) for text in chosen)


def texts_of_rows(file: Path) -> Iterator[str]:
    """Every text of 20 characters or more in a file of JSON lines, its beginning at least."""
    for line in file.read_text("utf-8").splitlines():
        values = [json.loads(line)]
        while values:
            match values.pop():
                case dict() as named:
                    values += named.values()
                case list() as listed:
                    values += listed
                case str() as text if len(text) >= 20:
                    yield text[:MAX_CONTENT_CHARACTERS]


def _alarms() -> Alarms:
    policy = load_policy()
    kinds = {name: PersonalDataDetector(frozenset({name})) for name in KINDS}

    def alarms(text: str) -> Iterator[str]:
        yield from (name for name, detector in kinds.items() if detector.find(text))
        claim = claim_of(text)
        read = ReadClaim(claim, (), (), (), policy)
        yield from (finding.code for check in (instruction, hidden) for finding in check.judge(read))

    return alarms


def run(files: list[Path], show: str = "") -> None:
    """Prints alarms per 10,000 texts of each half, of commits and of files. `show` prints the texts of the first half
    ("seen") in which a check alarms."""
    alarms = _alarms()
    texts: dict[str, list[str]] = {"seen half": [], "scored half": []}
    for package, text in texts_of_packages():
        odd = hashlib.sha256(package.encode()).digest()[0] % 2
        texts["scored half" if odd else "seen half"].append(text)
    log = subprocess.run(["git", "log", "--format=%B%x00"], capture_output=True, text=True, check=True)
    texts["commits"] = [each.strip() for each in log.stdout.split("\0") if len(each.strip()) >= 20]
    texts |= {file.name: [*texts_of_rows(file)] for file in files}
    for name, group in texts.items():
        counts: Counter[str] = Counter()
        for text in group:
            found = set(alarms(text))
            counts.update(found)
            if show in found and name != "scored half":
                print(f"  {text[:300]!r}")
        rates = (f"{code} {n} ({n * 10_000 / len(group):.1f})" for code, n in sorted(counts.items()))
        print(f"{name}: {len(group):,} texts; alarms (per 10,000): {', '.join(rates) or 'none'}")
