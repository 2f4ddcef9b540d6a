"""Writes `hashes.txt`: every pin of `constraints.txt` with the digest of what pip would install for it here, those that
the service needs first. `make hashes` runs it, in an environment that has the service.

The digests are of files for this platform and Python (Linux on x86-64, Python 3.11): for another, delete `hashes.txt`
first.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[1]
SERVICE, TARGET = "vouchgate[server]", ROOT / "hashes.txt"
BUILDS = "setuptools"  # what the service itself is built with
REST = "# What tests and measures it, and extras:\n"


def needed(wanted: str) -> set[str]:
    """The names of all that must be installed for a requirement, as this environment resolved it; without its own."""
    found: set[str] = set()
    waiting = [Requirement(wanted)]
    while waiting:
        one = waiting.pop()
        for each in map(Requirement, distribution(one.name).requires or ()):
            chosen = each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)
            )
            name = canonicalize_name(each.name)
            if chosen and f"{name}{sorted(each.extras)}" not in found:
                found |= {name, f"{name}{sorted(each.extras)}"}
                waiting.append(each)
    return {name for name in found if "[" not in name}


def main() -> int:
    """Asks pip for the files of new pins, and keeps the digests of others. The exit status is 1 when one has no pin."""
    pins = (ROOT / "constraints.txt").read_text().split()
    names = {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}
    before = TARGET.read_text().splitlines(keepends=True) if TARGET.exists() else []
    known = {line.partition(" ")[0]: line for line in before if "==" in line}
    lines = {name: known[pin] for name, pin in names.items() if pin in known}
    with tempfile.TemporaryDirectory() as folder:
        new = [pin for pin in pins if pin not in known]
        if new:
            fetch = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder)
            subprocess.run([*fetch, *new], check=True)
        for file in Path(folder).iterdir():
            parse = parse_wheel_filename if file.suffix == ".whl" else parse_sdist_filename
            name = parse(file.name)[0]
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            lines[name] = f"{names[name]} --hash=sha256:{digest}\n"
    service = needed(SERVICE) | {BUILDS}
    if missing := (service | set(names)) - set(lines):
        print(f"no pin, or no file, for {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    of_service = "".join(lines[name] for name in sorted(service))
    rest = "".join(lines[name] for name in sorted(set(lines) - service))
    TARGET.write_text(f"# What the service needs. Made by `make hashes`.\n{of_service}{REST}{rest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
