"""The table of recipes: settings of SoftPlanesClassifier that are each tried once.

A recipe earns its row by what the blend loses without it over all data sets of the benchmarks.
`PolyplaneClassifier.recipe_table()` returns the table, and docs/polyplane.md shows it
(`as_markdown`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyplane.model.input.column_maps import AS_IS

__all__ = [
    "EFFORTS",
    "OF_THE_VIEW",
    "RECIPES",
    "STATISTICS",
    "STREAM",
    "TABLE",
    "WIDE",
    "Effort",
    "Recipe",
    "as_markdown",
    "named",
    "recipes_for",
    "settings_of",
]

TABLE, WIDE = "table", "wide"  # kinds of data: texts and images are wide
MOST_CLASSES_AGAINST_REST = 20  # with more, a model of each against the rest takes too long
MANY_CLASSES = 100  # beyond which only recipes of quality 1 are tried
Settings = Mapping[str, Any]
STATISTICS = "none", "target"
OF_THE_VIEW = ("statistics",)  # settings that are no parameters of SoftPlanesClassifier


class Effort(NamedTuple):
    """Amount of work of a fit: splits, rows, steps and models."""

    most_splits: int  # on each of which every recipe is tried
    rows_to_judge: int  # with fewer judged rows there is another split
    rows_to_try: int  # of a split; with all rows of a large table the blend is hardly better
    steps_of_refit: int  # of a recipe on all rows: passes are fewer where rows are many
    n_models: int  # of all chosen recipes together: one with a large share has several seeds


EFFORTS = {  # by quality
    1: Effort(
        most_splits=1,
        rows_to_judge=0,
        rows_to_try=4_000,
        steps_of_refit=1_000_000,
        n_models=1,
    ),
    2: Effort(
        most_splits=3,
        rows_to_judge=4_000,
        rows_to_try=10_000,
        steps_of_refit=2_000_000,
        n_models=3,
    ),
    3: Effort(
        most_splits=4,
        rows_to_judge=50_000,
        rows_to_try=10_000,
        steps_of_refit=4_000_000,
        n_models=6,
    ),
}


@dataclass(frozen=True)
class Recipe:
    """A row of the table."""

    name: str
    why: str
    settings: Settings
    quality: int = 2  # of a fit, from which on it is tried
    data: str = TABLE
    needs_several_classes: bool = False


PLANES: Settings = {  # where a row says nothing else
    "columns": "fine", "n_planes": 32, "units": 2, "shrinkage": 0.3, "step_size": 0.3,
    "start_scale": 3.0, "max_iter": 12, "init": "subset", "learn_from": "most", "relevance": 1.0,
    "scores": "values", "directions": "none", "multi_class": "joint", "loss": "cross-entropy",
    "statistics": "none",
}  # fmt: skip
LONG: Settings = {"max_iter": 120, "shrinkage": 0.1, "learn_from": "unsure"}
LINEAR: Settings = {
    "n_planes": 1, "units": 1, "step_size": 0.03, "learn_from": "all", "relevance": 0.0,
}  # fmt: skip
OF_IMAGES: Settings = {
    "columns": AS_IS, "init": "kmeans", "units": 1, "shrinkage": 0.05, "learn_from": "unsure",
    "max_iter": 40, "relevance": 0.0,
}  # fmt: skip
STREAM: Settings = {  # of `partial_fit` without a fit before it
    "n_planes": 16, "units": 1, "shrinkage": 0.0, "learn_from": "unsure", "max_iter": 1,
}  # fmt: skip

RECIPES: Sequence[Recipe] = (
    Recipe(
        "linear", "The error of a linear model is reported beside that of the blend.",
        {**LINEAR, "columns": "plain", "shrinkage": 0.05}, quality=1,
    ),
    Recipe(
        "additive", "A curve along each column suits small and noisy tables.",
        {**LINEAR, "columns": "knots", "shrinkage": 0.1, "max_iter": 40}, quality=1,
    ),
    Recipe("fine", "Planes over fine hats suit most tables.", {}, quality=1),
    Recipe("fine, shrunk", "Strong shrinkage suits noisy tables.", {"shrinkage": 1.0}, quality=1),
    Recipe(
        "fine, 120 passes", "Clean tables gain from long trainings on important columns.",
        {**LONG, "relevance": 2.0},
    ),
    Recipe(
        "knots, 120 passes", "Few hats and little shrinkage suit smooth classes.",
        {**LONG, "columns": "knots", "shrinkage": 0.03}, quality=1,
    ),
    Recipe(
        "directions", "Principal directions suit columns that say more together than alone.",
        {"directions": "principal"},
    ),
    Recipe(
        "64 planes, 120 passes", "More planes over few hats of important columns: many clean rows.",
        {**LONG, "columns": "knots", "n_planes": 64, "relevance": 2.0, "shrinkage": 0.03},
    ),
    Recipe(
        "normal scores", "Ranks through the normal quantile function suit heavy tails.",
        {"columns": "rank", "scores": "normal", "shrinkage": 0.1, "max_iter": 40},
    ),
    Recipe(
        "normal scores, 120 passes", "Normal scores and few hats, trained long: smooth classes.",
        {**LONG, "columns": "knots", "scores": "normal"},
    ),
    Recipe(
        "each class against the rest", "Classes that are alike need planes of their own.",
        {"multi_class": "ovr", "columns": "knots", "shrinkage": 0.03, "learn_from": "unsure",
         "max_iter": 40, "relevance": 0.0}, needs_several_classes=True,
    ),
    Recipe(
        "target statistics", "What labels say of categories and pairs of them, over few hats.",
        {"columns": "knots", "shrinkage": 1.0, "statistics": "target"}, quality=1,
    ),
    Recipe(
        "target statistics, additive", "A curve along each statistic, for many-valued categories.",
        {**LINEAR, "columns": "knots", "shrinkage": 0.3, "max_iter": 40, "statistics": "target"},
    ),
    Recipe(
        "linear, wide", "Texts are often linear.",
        {**LINEAR, "columns": AS_IS, "shrinkage": 0.05}, quality=1, data=WIDE,
    ),
    Recipe(
        "squared hinge", "Squared hinges err less on texts than cross-entropy does.",
        {**LINEAR, "columns": AS_IS, "shrinkage": 0.05, "step_size": 0.3, "loss": "squared-hinge"},
        quality=1, data=WIDE,
    ),
    Recipe(
        "prototypes", "Planes that start as centres of k-means.", OF_IMAGES, quality=1, data=WIDE,
    ),
    Recipe(
        "prototypes, shrunk", "Texts hardly bend.", {**OF_IMAGES, "shrinkage": 0.3}, data=WIDE,
    ),
    Recipe(
        "prototypes against the rest", "Each image class against the rest.",
        {**OF_IMAGES, "multi_class": "ovr", "units": 2}, data=WIDE, needs_several_classes=True,
    ),
)  # fmt: skip


def recipes_for(
    quality: int, data: str, n_classes: int, has_statistics: bool = False
) -> list[Recipe]:
    """Return the rows of the table that are tried on data of this kind."""
    if n_classes > MANY_CLASSES:
        quality = 1
    has_several = 2 < n_classes <= MOST_CLASSES_AGAINST_REST
    return [
        recipe
        for recipe in RECIPES
        if recipe.quality <= quality
        and recipe.data == data
        and (has_several or not recipe.needs_several_classes)
        and (has_statistics or recipe.settings.get("statistics", "none") == "none")
    ]


def named(name: str) -> Recipe:
    """Return the row of the table with this name."""
    return next(recipe for recipe in RECIPES if recipe.name == name)


def settings_of(settings: Settings) -> dict[str, Any]:
    """Return all settings of a recipe, of which some may be given."""
    return {**PLANES, **settings}


def as_markdown() -> str:
    """Return the table as docs/polyplane.md shows it; settings that all rows share are left out."""
    lines = ["| recipe | data | quality | settings | why |", "|---|---|---|---|---|"]
    for recipe in RECIPES:
        settings = [
            f"{name}={value}" for name, value in recipe.settings.items() if PLANES[name] != value
        ]
        shown = f"`{', '.join(settings)}`" if settings else ""
        lines.append(
            f"| {recipe.name} | {recipe.data} | {recipe.quality} | {shown} | {recipe.why} |"
        )
    return "\n".join(lines)
