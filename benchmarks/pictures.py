"""Curves of benchmark results, kept beside the documentation."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.rcParams["svg.hashsalt"] = "polyplane"  # the same picture is the same file
mpl.rcParams["svg.fonttype"] = "none"  # text stays text

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def draw(name, panels):
    """An SVG of panels side by side: (title, x label, {curve: (x, mean, deviation)}, log)."""
    figure = Figure(figsize=(4.5 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)
    for axis, (title, label, curves, is_log) in zip(axes[0], panels, strict=True):
        for curve, (x, mean, deviation) in curves.items():
            axis.errorbar(x, mean, deviation, marker="o", markersize=4, capsize=2, label=curve)
        lowest = min(min(mean) for _, mean, _ in curves.values())
        axis.set(title=title, xlabel=label, ylabel="test error %")
        axis.set_ylim(0.8 * lowest, 2 * lowest)  # far worse points would hide the others
        if is_log:
            axis.set_xscale("log")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
