"""The command line. `vouchgate --help` lists the commands; `docs/cli.md` describes them."""

from __future__ import annotations

import gc
import sys

from vouchgate.extras import missing


def main() -> None:
    """Entry point of the `vouchgate` program. Exit status: 0 ok, 1 refused or failed, 2 usage."""
    gc.disable()  # nothing that is loaded is garbage: to look for some takes a seventh of a start
    if sys.argv[1:3] == ["hook", "run"] and len(sys.argv) == 4 and sys.argv[3].isalpha():
        from vouchgate.adapters.hook.run import main as answer  # noqa: PLC0415  (before every call of an agent's)

        sys.exit(answer(sys.argv[3]))
    # Importing the package alone loads nothing, and a base install has nothing that the commands are made with.
    try:
        from vouchgate.cli.app import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        told = missing(error, *sys.argv[1:2])
        if told is None:
            raise
        print(f"vouchgate: {told}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # which `run` hears from here on
        sys.exit(130)
    if sys.argv[1:2] != ["serve"]:  # it loads more, then turns it on again
        # Texts are read into many small objects that are needed, and to look at all of them for garbage again and again
        # takes a sixth of what gates and audits take.
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()
    sys.exit(run(sys.argv[1:]))
