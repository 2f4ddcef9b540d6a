"""Writes what the TypeScript client takes from the service: the types of the API, and the words of `next_step`.

    python clients/typescript/generate.py     # or: make client-types

Types come from the OpenAPI document, of the calls that the client makes, by openapi-typescript, which `make` installs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from vouchgate.client import advice
from vouchgate.server.app import create_app
from vouchgate.service import open_service
from vouchgate.settings import load_settings

HERE = Path(__file__).parent
NODE = Path(sys.prefix) / "bin" / "node"
GENERATOR = Path(sys.prefix, "typescript", "node_modules", "openapi-typescript", "bin", "cli.js")
OPTIONS = ("--root-types", "--root-types-no-schema-prefix", "--default-non-nullable=false", "--alphabetize")
# What the client calls. A service has more, for reviewers, auditors and admins.
CALLED = {
    ("get", "/v1/claims/pending"),
    ("get", "/v1/claims/pending/{queue_id}"),
    ("get", "/v1/decisions/{decision_id}"),
    ("get", "/v1/deliveries"),
    ("get", "/v1/impact"),
    ("get", "/v1/memories"),
    ("get", "/v1/memories/{memory_id}"),
    ("get", "/v1/memories/{memory_id}/evidence"),
    ("get", "/v1/receipts/{decision_id}"),
    ("get", "/v1/whoami"),
    ("post", "/v1/claims"),
    ("post", "/v1/claims/batch"),
    ("post", "/v1/claims/check"),
    ("post", "/v1/claims/corroborate"),
    ("post", "/v1/claims/pending/{queue_id}/answer"),
    ("post", "/v1/deliveries/lease"),
    ("post", "/v1/deliveries/{delivery_id}/done"),
    ("post", "/v1/deliveries/{delivery_id}/failed"),
    ("post", "/v1/documents/check"),
    ("post", "/v1/records"),
}
MADE = "// Made by clients/typescript/generate.py; `make client-types` makes it anew.\n"


def openapi() -> dict[str, Any]:
    """The OpenAPI document that a service serves."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({}, database_url=f"sqlite:///{folder}/empty.db", offline=True)
        with open_service(settings) as service:
            return create_app(service).openapi()


def types(document: dict[str, Any]) -> str:
    """TypeScript types of the calls that the client makes, and of what goes in and comes out."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path in sorted(CALLED):
        paths.setdefault(path, {})[method] = document["paths"][path][method]
    schemas, known = document["components"]["schemas"], set[str]()
    waiting = [paths]
    while waiting:
        named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(waiting.pop()))) - known
        known |= named
        waiting += [schemas[name] for name in named]
    part = document | {
        # The client asks for what a query may say; what else there is, it takes from the schemas.
        "paths": {
            path: {"get": {"parameters": each["get"]["parameters"], "responses": {}}}
            for path, each in paths.items()
            if "get" in each and "parameters" in each["get"] and "{" not in path
        },
        "components": {"schemas": {name: schemas[name] for name in sorted(known)}},
    }
    done = subprocess.run(
        [NODE, GENERATOR, *OPTIONS], input=json.dumps(part), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"openapi-typescript failed: {done.stderr}")
    return MADE + done.stdout


def sentences() -> str:
    """What `vouchgate.client.advice` says, for the same function in TypeScript."""
    tables = {
        "BY_CODE: Readonly<Record<string, string>>": advice._BY_CODE,
        "BY_RULE: Readonly<Record<string, string>>": advice._BY_RULE,
        "SET_BY: Readonly<Record<string, readonly string[]>>": advice._SET_BY,
        "OTHER": advice.OTHER,
        "SUGGESTED": advice._SUGGESTED,
        "NOT_GRANTED": advice._NOT_GRANTED,
    }
    return MADE + "".join(
        f"\nexport const {name} = {json.dumps(table, indent=2, ensure_ascii=False)};\n"
        for name, table in tables.items()
    )


def generate(document: dict[str, Any], folder: Path) -> None:
    """Writes both files."""
    (folder / "api.ts").write_text(types(document), "utf-8")
    (folder / "advice.ts").write_text(sentences(), "utf-8")


if __name__ == "__main__":
    generate(openapi(), HERE / "src" / "generated")
