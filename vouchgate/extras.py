"""What each extra brings, and the sentence for somebody who has not installed the one that is needed.

A base install has the client and the pure library; the rest is asked for by name: `pip install 'vouchgate[server]'`.
Nothing but the standard library is imported here, because this is what still works when all else is missing.
"""

from __future__ import annotations

# The modules that an extra brings and a base install lacks. One that several extras bring is the first one's.
MODULES = {
    "server": (
        "alembic",
        "cryptography",
        "fastapi",
        "fastapi_offline",
        "git",
        "htmldate",
        "httptools",
        "jinja2",
        "joserfc",
        "lxml",
        "lxml_html_clean",
        "markdown_it",
        "mdit_py_plugins",
        "numpy",
        "prometheus_client",
        "psycopg",
        "pydantic_settings",
        "rich",
        "sqlalchemy",
        "sqlglot",
        "sqlmodel",
        "starlette",
        "trafilatura",
        "typer",
        "uvicorn",
        "uvloop",
        "yaml",
    ),
    "mcp": ("mcp", "mcp_types"),
    "mcp-gate": ("fastmcp", "jsonschema", "referencing"),
    "langgraph": ("langchain_core", "langgraph"),
    "mem0": ("mem0",),
    "openai-agents": ("agents",),
    "bulk": ("dask", "distributed", "pyarrow"),
    "nli": ("onnxruntime",),
    "vector": ("safetensors", "sqlite_vec", "tokenizers"),
}
# These commands have an extra of their own, which is all that they need; the others need `server`.
_COMMANDS = ("mcp", "mcp-gate", "hook")
# The major version that is written for, where packages that are often installed beside this one ask for another.
_MAJORS = {"mcp": 2, "fastmcp": 4}


def sentence(who: str, extra: str) -> str:
    """That `who` needs an extra, and how to install it."""
    return f"{who} needs the extra \"{extra}\": pip install 'vouchgate[{extra}]'"


def missing(error: BaseException, command: str = "") -> str | None:
    """What to tell who ran a command that ended with this error because an extra is not installed; None for any other
    error. An error that was raised from the missing module speaks for itself."""
    cause = error.__cause__
    if isinstance(cause, ModuleNotFoundError) and _extra_of(cause) is not None:
        return str(error)
    extra = _extra_of(error) if isinstance(error, ModuleNotFoundError) else None
    if extra is None:
        return None
    command = (
        command if command[:1].isalpha() and command.replace("-", "_").isidentifier() else ""
    )  # not an option
    return sentence(f"vouchgate {command}".rstrip(), command if command in _COMMANDS else extra)


def _extra_of(error: ModuleNotFoundError) -> str | None:
    module = (error.name or "").partition(".")[0]
    return next((extra for extra, modules in MODULES.items() if module in modules), None)


def mismatch(command: str, *distributions: str) -> str | None:
    """Why a command with an extra of its own cannot run, as a sentence: one of these distributions is not installed, or
    in a major version that is not the one written for. None when all is well. Nothing of them is imported."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (a fifth of the time of --help)

    for name in distributions:
        try:
            found = version(name)
        except PackageNotFoundError:
            return sentence(f"vouchgate {command}", command)
        if found.partition(".")[0] != str(_MAJORS[name]):
            return (
                f"vouchgate {command} needs version {_MAJORS[name]} of the package {name}, and here is {found}, "
                f"which another package may need: install vouchgate apart from it, with "
                f"pipx install 'vouchgate[{command}]' or uv tool install 'vouchgate[{command}]'"
            )
    return None
