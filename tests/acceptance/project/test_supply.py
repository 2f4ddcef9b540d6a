"""What the service is made of: every pin has its digest, and the list for others has every pin."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
HASHES = (ROOT / "hashes.txt").read_text("utf-8")
ASK = "change constraints.txt, then run `make hashes`"


def pins() -> dict[str, str]:
    return dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())


def test_every_pin_has_a_digest_and_nothing_else_has() -> None:
    hashed = re.findall(r"^([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}$", HASHES, re.MULTILINE)
    assert dict(hashed) == pins(), ASK
    assert (
        len(hashed) == len(pins()) == len([line for line in HASHES.splitlines() if not line.startswith("#")])
    )
    assert "://" not in HASHES


def test_the_image_is_made_of_what_the_service_needs_by_digest() -> None:
    made = runpy.run_path(str(ROOT / "deploy" / "hashes.py"))
    of_service = HASHES.partition(made["REST"])[0]
    names = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", of_service, re.MULTILINE)}
    assert names == made["needed"](made["SERVICE"]) | {made["BUILDS"]}, ASK
    steps = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"sed '/\^(.+)/,\$d' hashes\.txt > service\.txt", steps)[1] in made["REST"]  # type: ignore[index]
    installs = re.findall(r"pip install (.*)", steps)
    assert [{"--no-deps", "--require-hashes"} <= set(each.split()) for each in installs] == [True, False]
    assert installs[1].split() == ["--no-cache-dir", "--no-deps", "--no-build-isolation", "."]


def test_the_list_for_others_has_every_pin(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"cyclonedx-py (.*)", (ROOT / "Makefile").read_text("utf-8"))
    written = tmp_path / "sbom.json"
    command = [sys.executable, "-m", "cyclonedx_py", *recipe.replace("sbom.json", str(written)).split()]
    subprocess.run([*command, "--no-validate"], cwd=ROOT, check=True, capture_output=True)
    listed = json.loads(written.read_text("utf-8"))
    # All are alike, and `make sbom` holds each against the schema, which takes seconds.
    some = json.dumps(listed | {"components": listed["components"][:5], "dependencies": []})
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(some) is None
    assert listed["metadata"]["component"]["name"] == "vouchgate"
    assert {each["name"]: each["version"] for each in listed["components"]} == pins()
    assert all(each["externalReferences"][0]["hashes"] for each in listed["components"])
