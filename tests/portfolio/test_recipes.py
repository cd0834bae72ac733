"""The table of recipes, and the page that shows it."""

from pathlib import Path

import pytest

from polyplane import PolyplaneClassifier, SoftPlanesClassifier
from polyplane.portfolio.recipes import RECIPES, STATISTICS, as_markdown, recipes_for, settings_of

PAGE = Path(__file__).parents[2] / "docs" / "polyplane.md"


def test_the_page_shows_the_table():
    assert as_markdown() in PAGE.read_text()


def test_the_table_has_a_row_a_recipe_with_all_settings():
    table = PolyplaneClassifier.recipe_table()
    assert table["recipe"].tolist() == [recipe.name for recipe in RECIPES]
    assert set(settings_of({})) <= set(table)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_settings_are_parameters_of_the_algorithm(recipe):
    settings = settings_of(recipe.settings)
    assert settings.pop("statistics") in STATISTICS
    assert settings.keys() <= SoftPlanesClassifier().get_params().keys()


@pytest.mark.parametrize("quality", [1, 2, 3])
@pytest.mark.parametrize("data", ["table", "wide"])
@pytest.mark.parametrize("n_classes", [2, 7, 1000])
def test_a_linear_recipe_is_always_tried(quality, data, n_classes):
    names = [recipe.name for recipe in recipes_for(quality, data, n_classes)]
    assert names[0].startswith("linear")
    assert len(names) >= 2
    assert any("rest" in name for name in names) == (n_classes == 7 and quality > 1)
