"""`make bench`: every figure beside a named baseline measured in the same run, as a ratio.

Times of one run on one machine mean little; ratios inside a run hold. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse

from bench import http_load, text_checks


def main() -> None:
    """Runs the benches named on the command line, or all."""
    benches = {"text": text_checks.run, "http": http_load.run}
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(benches)}; all by default"
    )
    names = parser.parse_args().names or list(benches)
    unknown = sorted(set(names) - set(benches))
    if unknown:
        parser.error(f"no bench named {', '.join(unknown)}; there are {', '.join(benches)}")
    for name in names:
        benches[name]()


if __name__ == "__main__":
    main()
