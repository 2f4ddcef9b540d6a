"""Extraction from documents beside a Markdown parse of the same pages, and hostile documents at two sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from vouchgate.ingest.documents import read_document

PAGES = Path(__file__).parents[1] / "docs"
ROUNDS = 7
HOSTILE: dict[str, Callable[[int], str]] = {
    "one line": lambda size: "The kiln burns oak. " * (size // 20),
    "one word": lambda size: "a" * size,
    "footnotes": lambda size: "".join(f"Hot.[^{n}]\n\n[^{n}]: https://e.example/{n}\n\n" for n in range(size // 50)),
    "notes in a ring": lambda size: "".join(f"[^{n}]: see [^{n + 1}]\n" for n in range(size // 20)),
    "links": lambda size: "It is [hot](https://oven.example/a). " * (size // 37),
    "addresses": lambda size: "- it is hot\nhttps://oven.example/a\n" * (size // 34),
    "code": lambda size: "`a` \\* " * (size // 7),
    "brackets": lambda size: "[[]" * (size // 3),
    "open brackets": lambda size: "[" * size,
    "open pictures": lambda size: "![" * (size // 2),
    "emphasis": lambda size: "*a _b " * (size // 6),
    "back-ticks": lambda size: "`a ``b " * (size // 7),
    "open tags": lambda size: "<a b='" * (size // 6),
    "bars": lambda size: "|" * size,
    "numbers": lambda size: "It is hot [1-9999]. " * (size // 20),
    "destinations": lambda size: "[a](" * (size // 4),
    "nested quotations": lambda size: ("> " * 200 + "It is hot.\n") * (size // 411),
    "nested tags": lambda size: "<div><ul><li>" * (size // 13),
    "comments": lambda size: "a <!-- " * (size // 7),
    "table": lambda size: "| a | b |\n|---|---|\n" + "| 1 | it is hot |\n" * (size // 18),
}  # fmt: skip


def run() -> None:
    """Prints both."""
    texts = [page.read_text("utf-8") for page in sorted(PAGES.glob("*.md"))]
    plain = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    github = MarkdownIt("gfm-like")
    took = _best(
        [
            lambda: [github.parse(text) for text in texts],
            lambda: [plain.parse(text) for text in texts],
            lambda: [read_document("page.md", text.encode()) for text in texts],
        ]
    )
    size = sum(map(len, texts))
    print(f"\nDocuments: our own pages, {size:,} characters, best of {ROUNDS} rounds\n")
    print(f"parsed as GFM, addresses found     {took[0] * 1000:8.1f} ms")
    print(f"parsed, addresses not looked for   {took[1] * 1000:8.1f} ms")
    print(f"extraction                         {took[2] * 1000:8.1f} ms  {took[2] / took[0]:.2f} of the first, "
          f"{took[2] / took[1]:.2f} of the second")  # fmt: skip
    print("\nHostile documents: milliseconds a 100,000 characters, at 100,000 and at 400,000\n")
    for name, make in HOSTILE.items():
        each = [_of(make(size)) * 1e8 / size for size in (100_000, 400_000)]
        print(f"{name:20} {each[0]:8.0f} {each[1]:8.0f}  {each[1] / each[0]:.2f}")


def _best(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The least seconds of processor time of each, run in turns."""
    least = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for number, one in enumerate(runs):
            begun = time.process_time()
            one()
            least[number] = min(least[number], time.process_time() - begun)
    return least


def _of(text: str) -> float:
    begun = time.process_time()
    read_document("page.md", text.encode())
    return time.process_time() - begun
