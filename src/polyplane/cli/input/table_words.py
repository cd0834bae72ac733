"""Descriptions of a table's columns in a few lines, for people and for programs."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.data.table.layout import AUTO, Layout, label_by_name

__all__ = ["label_facts", "label_words", "table_facts", "table_lines"]

MOST_NAMED = 6  # columns in a line
MOST_CLASSES = 8
WORDS = {
    "number": "numbers", "flag": "flags", "date": "dates", "seconds": "times",
    "category": "categories", "text": "texts", "aside": "set aside", "empty": "empty",
}  # fmt: skip
ONE = {"numbers": "number", "flags": "flag", "dates": "date", "times": "time", "texts": "text"}
ONE["categories"] = "category"


def table_facts(layout: Layout) -> dict[str, Any] | None:
    """Return what the columns of a table are; None where rows came from none."""
    if not layout.is_learned:
        return None
    return {
        "columns": [{"name": one.name, "kind": one.kind} for one in layout.sources],
        "missing": layout.missing,
        "gaps": {name: n for name, n in layout.gaps.items() if n},
        "features": layout.width,
    }


def table_lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of a table in words, by line."""
    kinds = Counter(WORDS[one["kind"]] for one in facts["columns"])
    counted = [f"{n} {ONE.get(word, word) if n == 1 else word}" for word, n in kinds.items()]
    lines = [("columns", f"{len(facts['columns'])}: {', '.join(counted)}")]
    gaps = facts["gaps"]
    if gaps:
        n_gaps = sum(gaps.values())
        named = _listed([f"{name!r} {n:,}" for name, n in gaps.items()])
        lines.append(("missing", f"{n_gaps:,} value{'s' * (n_gaps > 1)}: {named}"))
    aside = [repr(one["name"]) for one in facts["columns"] if one["kind"] == "aside"]
    if aside:
        reason = "almost unique per row; --text-columns keeps one"
        lines.append(("set aside", f"{_listed(aside)}: {reason}"))
    return lines


def label_facts(layout: Layout, asked: Any, y: Array | None) -> dict[str, Any] | None:
    """Return the column of the label, whether it was guessed, and the share of each class."""
    if not layout.sources or layout.label_position is None:
        return None
    name = layout.label
    is_guessed = asked == AUTO and (name is None or label_by_name([name]) is None)
    found: dict[str, Any] = {
        "name": name,
        "position": layout.label_position,
        "is_guessed": is_guessed,
        "shares": None,
    }
    if y is not None and y.size:
        labels, counts = np.unique(y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        pairs = zip(labels[order].tolist(), (counts[order] / y.size).tolist(), strict=True)
        found["shares"] = [{"label": label, "share": share} for label, share in pairs]
    return found


def label_words(facts: Mapping[str, Any]) -> str:
    """Return the facts of a label in words."""
    name, place = facts["name"], facts["position"] + 1
    words = f"column {place}" if name is None else repr(name)
    if facts["is_guessed"]:
        words += " (the last column, for none is called label: --label names another)"
    if facts["shares"]:
        shares = [f"{one['label']} {one['share']:.1%}" for one in facts["shares"]]
        more = f" and {len(shares) - MOST_CLASSES} more" if len(shares) > MOST_CLASSES else ""
        words += f": {', '.join(shares[:MOST_CLASSES])}{more}"
    return words


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return ", ".join(words[:MOST_NAMED]) + more
