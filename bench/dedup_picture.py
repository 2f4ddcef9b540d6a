"""The picture of the dedup bench: times over store size, and floods beside the aim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

AIMS = {"sqlite": 2.5, "postgresql": 1.5}
AIM_COLOURS = {"sqlite": "#d9730d", "postgresql": "#b3261e"}
OURS = {"SQLite, gate's index": "#0b7a75", "PostgreSQL, gate's index": "#1f5fbf"}
BARE = {"SQLite, bare look-up by key": "#0b7a75", "PostgreSQL, bare look-up by key": "#1f5fbf"}
OTHERS = {
    "SQLite, naive scan": ("#b3261e", "s"),
    "sets in memory, scan": ("#d9730d", "v"),
    "rapidfuzz token_sort_ratio": ("#8e44ad", "D"),
    "datasketch, defaults": ("#7a5c00", "^"),
    "datasketch, 16 bands of 8": ("#c29700", "^"),
    "rensa, 16 bands of 8": ("#5f6b7a", "P"),
    "SetSimilaritySearch": ("#3d7f2a", "X"),
}
PAPER, INK, GRID = "#fbfbf8", "#22262b", "#d5d7d2"  # opaque paper: readable on light and dark pages alike


def draw(sections: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws what `Section.as_json` gave, to a file of the kind that its name ends in. Times are of stores of one
    owner. Equal figures give an equal file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    style = {
        "svg.hashsalt": "vouchgate",  # otherwise every file has other ids
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.facecolor": PAPER,
        "figure.facecolor": PAPER,
        "savefig.facecolor": PAPER,
    }
    with mpl.rc_context(style):
        figure, (median, slow, floods) = pyplot.subplots(
            1, 3, figsize=(16, 6), width_ratios=(1, 1, 1.1), layout="constrained"
        )
        stores = [section for section in sections if section["flood"] is None and section["owners"] == 1]
        _times(median, stores, 0, "check of one claim, median")
        _times(slow, stores, 1, "check of one claim, 99th percentile")
        low, high = _limits(stores)
        for axes in (median, slow):
            axes.set_ylim(low, high)
        figure.legend(*median.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        _floods(floods, [section for section in sections if section["flood"] is not None])
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def _limits(stores: Sequence[dict[str, Any]]) -> tuple[float, float]:
    times = [1000 * time for section in stores for both in section["check"].values() for time in both]
    return min(times) / 2, max(times) * 2


def _missed(name: str, stores: Sequence[dict[str, Any]]) -> str:
    """A fast look-up that does not find what is there is no competitor, and the legend says so."""
    recalls = [section["recall"][name] for section in stores if section["recall"].get(name) is not None]
    lowest = min(recalls, default=1)
    return "" if lowest == 1 else f" (recall {lowest:.2f})"


def _times(axes: Any, stores: Sequence[dict[str, Any]], which: int, title: str) -> None:
    def line(name: str, **look: Any) -> None:
        points = [
            (section["size"], 1000 * section["check"][name][which])
            for section in stores
            if name in section["check"]
        ]
        if points:
            axes.plot(*zip(*points, strict=True), label=name + _missed(name, stores), **look)

    for name, (colour, marker) in OTHERS.items():
        line(name, color=colour, marker=marker, linewidth=1.2, markersize=6)
    for name, colour in BARE.items():
        line(name, color=colour, marker="o", linewidth=1.2, linestyle=":", markersize=4)
    for name, colour in OURS.items():
        line(name, color=colour, marker="o", linewidth=3, markersize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("claims in the store, one owner")
    axes.set_ylabel("milliseconds")
    axes.set_title(title)
    sizes = [section["size"] for section in stores]
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.grid(color=GRID, linewidth=0.6)


def _floods(axes: Any, floods: Sequence[dict[str, Any]]) -> None:
    height = 0.38
    for offset, (database, label) in enumerate((("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))):
        colour = list(OURS.values())[offset]
        places = [place + (offset - 0.5) * height for place in range(len(floods))]
        ratios = [section["ratio"][database] for section in floods]
        axes.barh(places, ratios, height=height, color=colour, label=label)
        aim = AIMS[database]
        axes.axvline(
            aim, color=AIM_COLOURS[database], linestyle="--", linewidth=2, label=f"aim, {label}: {aim:g}"
        )
    axes.set_yticks(range(len(floods)), [section["flood"] for section in floods])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("median of the check / bare look-up by key")
    if floods:
        axes.set_title(f"floods: {floods[0]['size']:,} claims of one template")
    axes.legend(loc="upper right", frameon=True, facecolor=PAPER, edgecolor=GRID)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
