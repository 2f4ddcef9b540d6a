"""`make bench`: every figure beside a named baseline measured in the same run, as a ratio.

Times of one run on one machine mean little; ratios inside a run hold. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path


def _text() -> None:
    from bench import text_checks

    text_checks.run()


def _gate_documents() -> None:
    from bench import gate_documents

    gate_documents.run()


def _documents() -> None:
    from bench import documents

    documents.run()


def _http() -> None:
    from bench import http_load

    http_load.run()


def _parts() -> None:
    from bench import parts

    parts.run()


def _doors() -> None:
    from bench import doors

    doors.run()


def _idle() -> None:
    from bench import idle

    idle.run()


def _partitions() -> None:
    from bench import partitions

    partitions.run()


def _log() -> None:
    from bench import log_tree

    log_tree.run()


def _web() -> None:
    from bench import web_load

    web_load.run()


def _fairness() -> None:
    from bench import fairness

    fairness.run()


def _queue() -> None:
    from bench import queue_page

    queue_page.run()


def _amsb() -> None:
    from bench import amsb

    amsb.run()


def _harvest() -> None:
    from bench import harvest

    harvest.run()


def _records() -> None:
    from bench import records

    records.run()


def _spot_checks() -> None:
    from bench import spot_checks

    spot_checks.run()


def _log_proofs() -> None:
    from bench import log_proofs

    log_proofs.run()


def _judgement(asked: argparse.Namespace) -> None:
    from bench import judgement

    judgement.run(asked.rows_of)


def _entailment(asked: argparse.Namespace) -> None:
    from bench import entailment

    entailment.run(asked.model)


def _alarms(asked: argparse.Namespace) -> None:
    from bench import false_alarms

    false_alarms.run(asked.rows_of, asked.show)


def _languages(asked: argparse.Namespace) -> None:
    from bench.languages import run

    run.run(held=asked.held, show=asked.show)


def _import(asked: argparse.Namespace) -> None:
    from bench import import_speed

    import_speed.run(asked.rows or import_speed.ROWS)


def _memories(asked: argparse.Namespace) -> None:
    from bench.memories import score

    score.run(held=asked.held, show=asked.show)


def _search(asked: argparse.Namespace) -> None:
    from bench.search import run

    run.run(asked.rows or run.ROWS, held=asked.held)


def _soak(asked: argparse.Namespace) -> None:
    from bench.soak import run

    options = run.Options(seconds=asked.seconds, rate=asked.rate, seed=asked.seed, picture=asked.picture)
    if asked.database is not None:
        options = replace(options, databases=(asked.database,))
    if status := run.main(options):
        raise SystemExit(status)


def _bulk(asked: argparse.Namespace) -> None:
    from bench import bulk

    bulk.run(asked.rows or bulk.SIZES[-2])


def _dedup(asked: argparse.Namespace) -> None:
    from bench import dedup

    if asked.drawn_from is not None:
        dedup.draw_again(asked.drawn_from, asked.picture)
        return
    options = dedup.MILLION if asked.million else dedup.Options()
    changes = {"sizes": asked.sizes, "flood": asked.flood, "picture": asked.picture, "figures": asked.figures}
    dedup.run(replace(options, **{name: value for name, value in changes.items() if value is not None}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="text, documents, gate-documents, http, parts, idle, doors, partitions, log, log-proofs, web, fairness,"
        " queue, search,"
        " amsb,"
        " harvest, records, spot-checks, judgement, entailment, memories, alarms, languages, import, bulk, dedup; or"
        " all of these. And soak, which is not among them and takes an hour",
    )
    group = parser.add_argument_group("judgement, alarms")
    group.add_argument(
        "--rows-of",
        type=Path,
        nargs="*",
        default=[],
        metavar="FILE",
        help="rows that people judged, as JSONL",
    )
    group.add_argument(
        "--show",
        default="",
        metavar="CODE",
        help="print the texts in which this was found; languages, memories: what went wrong with this one",
    )
    parser.add_argument(
        "--model", type=Path, metavar="FILE", help="entailment: the TOML file of a model of yours"
    )
    group = parser.add_argument_group("import, bulk, search, memories, languages")
    group.add_argument("--rows", type=int, metavar="N", help="how many claims")
    group.add_argument("--held", action="store_true", help="search, memories, languages: what is held back")
    group = parser.add_argument_group("soak", "--picture FILE draws it")
    group.add_argument("--seconds", type=float, default=3600.0, metavar="N", help="how long: 3600")
    group.add_argument(
        "--database", choices=("sqlite", "postgresql"), help="one of them; both side by side unless said"
    )
    group.add_argument(
        "--rate", type=float, default=2.0, metavar="N", help="requests a second of each caller, at most: 2"
    )
    group.add_argument("--seed", type=int, default=18, metavar="N", help="another order of kills and faults")
    group = parser.add_argument_group("dedup")
    group.add_argument("--million", action="store_true", help="also a million claims, and floods of 100,000")
    group.add_argument("--sizes", type=_sizes, metavar="N,N", help="how many claims, in growing order")
    group.add_argument("--flood", type=int, metavar="N", help="claims of each template; 0 for no floods")
    group.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the times and floods (.svg or .png)"
    )
    group.add_argument("--figures", type=Path, metavar="FILE", help="keep the figures as JSON")
    group.add_argument(
        "--from",
        dest="drawn_from",
        type=Path,
        metavar="FILE",
        help="draw --picture from figures that were kept, and measure nothing",
    )
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(size) for size in text.split(",")))


def main() -> None:
    """Runs the benches named on the command line, or all."""
    parser = _parser()
    asked = parser.parse_args()
    if asked.drawn_from is not None and asked.picture is None:
        parser.error("--from needs --picture")
    benches: dict[str, Callable[[], None]] = {
        "text": _text,
        "documents": _documents,
        "gate-documents": _gate_documents,
        "http": _http,
        "parts": _parts,
        "idle": _idle,
        "doors": _doors,
        "partitions": _partitions,
        "log": _log,
        "web": _web,
        "fairness": _fairness,
        "queue": _queue,
        "search": partial(_search, asked),
        "amsb": _amsb,
        "harvest": _harvest,
        "records": _records,
        "spot-checks": _spot_checks,
        "log-proofs": _log_proofs,
        "judgement": partial(_judgement, asked),
        "entailment": partial(_entailment, asked),
        "alarms": partial(_alarms, asked),
        "languages": partial(_languages, asked),
        "import": partial(_import, asked),
        "memories": partial(_memories, asked),
        "bulk": partial(_bulk, asked),
        "dedup": partial(_dedup, asked),
    }
    names = asked.names or list(benches)
    benches["soak"] = partial(_soak, asked)
    unknown = sorted(set(names) - set(benches))
    if unknown:
        parser.error(f"no bench named {', '.join(unknown)}; there are {', '.join(benches)}")
    for name in names:
        benches[name]()


if __name__ == "__main__":
    main()
