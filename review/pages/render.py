"""Templates and the files beside them. What is shown is text: everything is escaped. Text of others is printed by the
macros of `_text.html`, piece by piece (`opening_pieces`: only its beginning, in lists); the filter `unseen` makes one
plain line of it where no marks can be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from vouchgate.review.pages.wording.text import opening_pieces, pieces, plain_line

STATIC_PATH = "/review/static/"
_MOST = 120  # characters of a text in one plain line
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Static(NamedTuple):
    """A file that pages refer to. `version` changes with its content, so that it may be kept for ever."""

    content: bytes
    media_type: str
    version: str


def _static_files() -> Mapping[str, Static]:
    """Every file of a known kind in the folder `static`; nothing else can be asked for."""
    files = {}
    for file in sorted((Path(__file__).parent / "static").iterdir()):
        if file.suffix in _KINDS:
            content = file.read_bytes()
            version = hashlib.sha256(content).hexdigest()[:12]
            files[file.name] = Static(content, _KINDS[file.suffix], version)
    return MappingProxyType(files)


STATIC = _static_files()


def asset(name: str) -> str:
    """The address of a file in `static`. Raises KeyError when there is none of this name."""
    return f"{STATIC_PATH}{name}?v={STATIC[name].version}"


def environment(*packages: str) -> Environment:
    """For the templates of these packages. All but Markdown is escaped."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=select_autoescape(disabled_extensions=["md"], default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["asset"] = asset
    made.filters["pieces"] = pieces
    made.filters["opening"] = opening_pieces
    made.filters["unseen"] = partial(plain_line, most=_MOST)
    return made


_ENVIRONMENT = environment("vouchgate.review.pages")


def render(name: str, **context: object) -> str:
    """The template `name` (like `queue.html`) with these values, as HTML.

    Raises jinja2.UndefinedError when the template uses a name that is not given.
    """
    return _ENVIRONMENT.get_template(name).render(context)
