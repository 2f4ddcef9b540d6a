"""The program of a process that reads what source code says of a name, for `ingest.sources.git.files`.

Code comes from whoever may write to a repository: a parser can be kept busy, made to take all memory, or be broken by a
file written for that, which so costs only a process of its own. Nothing that is read is imported or run.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MEMORY = 1024 * 1024 * 1024  # bytes of address space
_LONGEST = 120  # characters of an expression that is told: a longer one is a table, or prose
PROGRAM = __file__
RULES = tomllib.loads(Path(PROGRAM).with_suffix(".toml").read_text("utf-8"))
_Computed = ast.BinOp | ast.UnaryOp | ast.Call
_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Definition(NamedTuple):
    """What a name, with its module and classes, stands for; without one, a file that has it and is not understood."""

    path: str
    name: str
    source: str
    facts: list[str]  # what the source says, a sentence or a paragraph each


def in_python(text: str, name: str) -> Iterator[tuple[str, str, list[str]]]:
    """What a Python file defines under a name: names, sources and facts. Raises what `ast.parse` does."""
    if name.isascii() and not re.search(rf"\b(?:def|class)\s+{name}\b|\b{name}\s*[:=]", text):
        return
    lines = text.split("\n")
    stack: list[tuple[ast.AST, str, ast.AST | None]] = [(ast.parse(text), "", None)]
    while stack:
        node, scope, owner = stack.pop()
        of = f" of `{owner.name}`" if isinstance(owner, ast.ClassDef) else ""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Named):
                stack.append((child, f"{scope}{child.name}.", child))
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                stack.append((child, scope, owner))
            if isinstance(child, ast.stmt) and (told := [*_told(child, name, owner)]):
                coded = [(fact, given, _code(value)) for fact, given, value in told]
                facts = [RULES[each].format(name=name, of=of, given=g, code=c) for each, g, c in coded if c]
                said = ast.get_docstring(child) if isinstance(child, _Named) else None
                first = min(each.lineno for each in (child, *getattr(child, "decorator_list", ())))
                yield scope + name, "\n".join(lines[first - 1 : child.end_lineno]), [*facts, said or ""]


def _told(node: ast.stmt, name: str, owner: ast.AST | None) -> Iterator[tuple[str, str, ast.expr | None]]:
    """The facts of a definition of a name: which, of which parameter or field, and the code in it."""
    if not isinstance(node, _Named):
        for each, value in _assigned(node):
            if each == name and isinstance(owner, ast.ClassDef | None):
                yield from (("named", "", ast.Constant("constant")), ("value", "", value))
        return
    called = (ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list)
    if node.name != name or not {"overload", "setter", "deleter"}.isdisjoint(called):  # of one beside it
        return
    if isinstance(node, ast.ClassDef):
        kind = "class"
        yield from (("base", "", base) for base in node.bases)
        for child in node.body:
            for field, value in _assigned(child):
                yield from (("field", field, getattr(child, "annotation", None)), ("default", field, value))
    else:
        kind = "method" if isinstance(owner, ast.ClassDef) else "function"
        kind = f"async {kind}" if isinstance(node, ast.AsyncFunctionDef) else kind
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        values = [*node.args.defaults, *node.args.kw_defaults]
        for one, value in zip(given, [None] * (len(given) - len(values)) + values, strict=True):
            yield from (("parameter", one.arg, one.annotation), ("default", one.arg, value))
        yield "returns", "", node.returns
    yield "named", "", ast.Constant(kind)
    yield from (("decorated", "", each) for each in node.decorator_list)


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement gives a value, or a type alone."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield target.id, node.value


def _code(node: ast.expr | None) -> str:
    """An expression as people write it; empty for none, for a long one, and for one with numbers it computes with."""
    value = node.value if isinstance(node, ast.Constant) else None
    code = value if isinstance(value, str) else ast.unparse(node) if node else ""
    if isinstance(value, float) and value.is_integer():
        code = f"{value:.0f} ({code})"
    if re.search(r"\d", code) and node and any(isinstance(each, _Computed) for each in ast.walk(node)):
        code = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return code if len(code) <= _LONGEST and "\n" not in code else ""


def in_other(text: str, name: str) -> Iterator[tuple[str, str, list[str]]]:
    """The same of another language: the lines that begin a definition, with the comment right above each."""
    for match in re.finditer(RULES["definition"].replace("NAME", re.escape(name)), text):
        said = match["line"], re.sub(RULES["comment"], "", match["above"])
        yield name, match[0], [f"There is a definition of `{name}`.", *said]


def main() -> None:
    """Answers one request: a name, and the text of files by path."""
    import resource  # noqa: PLC0415  (which Windows has not, where git is not read either)

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    name, texts = json.load(sys.stdin)
    answer: list[Definition] = []
    for path, text in texts.items():
        module, _, ending = path.replace("/", ".").rpartition(".")
        read = in_python if ending in ("py", "pyi") else in_other
        try:
            found = [*read(text, name)][:50]  # one file may define a name so often
        except Exception:  # noqa: BLE001  (no Python that is known here, or made to break what reads it)
            found, read = [], in_other
        for called, source, said in found or [("", "", [])] * (read is in_other):
            full = called and f"{module.removesuffix('.__init__')}.{called}"
            facts = [re.sub(RULES["task"], "", each).strip() for each in said]
            answer.append(Definition(path, full, source, [each for each in facts if each]))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
