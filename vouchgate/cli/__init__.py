"""The command line. `vouchgate --help` lists the commands; `docs/cli.md` describes them."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `vouchgate` program. Exit status: 0 ok, 1 refused or failed, 2 usage."""
    from vouchgate.cli.app import run  # noqa: PLC0415  (importing the package alone loads nothing)

    sys.exit(run(sys.argv[1:]))
