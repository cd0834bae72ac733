"""Docstrings: public names have a reference, its examples run, and first sentences stand alone."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest
from sklearn.datasets import make_moons

import polyplane

SOURCE = Path(polyplane.__file__).parent
VAGUE = re.compile(
    r"(The same|As|How|It|Of|So|Such|That|There|These|They|This|Those|What|Whether|Which)\b"
)
# Folders whose first sentences are still to be rewritten; their public names are checked.
UNCHECKED = set()
OWN_SECTIONS = {"EX01", "SA01"}  # Examples and See Also: of the class, not of each of its members
OPTIONAL = {"ES01"}  # an extended summary
OF_OTHERS = {
    "get_metadata_routing",
    "set_fit_request",
    "set_partial_fit_request",
    "set_score_request",
}

NAMES = [name for name in polyplane.__all__ if name not in ("__version__", "plots")]
PLOTS = [f"plots.{name}" for name in polyplane.plots.__all__]


def public(name):
    thing = polyplane
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def members_of(cls):
    """Yield the names of public methods and properties that polyplane defines."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if (
            name.startswith("_")
            or name in OF_OTHERS
            or not owner.__module__.startswith("polyplane")
        ):
            continue
        if isinstance(vars(owner)[name], property) or callable(getattr(cls, name, None)):
            yield name


@pytest.mark.parametrize("name", [*NAMES, *PLOTS])
def test_numpydoc_finds_nothing_wrong(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    thing, path = public(name), f"polyplane.{name}"
    if name in PLOTS:
        path = f"{thing.__module__}.{thing.__name__}"
    wrong = [(path, *error) for error in validate(path)["errors"] if error[0] not in OPTIONAL]
    for member in members_of(thing) if inspect.isclass(thing) else ():
        errors = validate(f"{path}.{member}")["errors"]
        wrong += [(member, *one) for one in errors if one[0] not in OPTIONAL | OWN_SECTIONS]
    assert wrong == []


@pytest.mark.compiled
@pytest.mark.parametrize("name", [*NAMES, *PLOTS])
def test_the_example_runs(name):
    if name in PLOTS:
        pytest.importorskip("matplotlib").use("Agg")
    if name == "to_onnx":
        pytest.importorskip("onnx")
    (example,) = doctest.DocTestFinder(recurse=False).find(public(name), name, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
    if name in PLOTS:
        pytest.importorskip("matplotlib.pyplot").close("all")


ESTIMATORS = [name for name in NAMES if name.endswith("Classifier")]
OF_TABLES = {"feature_names_in_", "layout_"}  # attributes that a fit on plain arrays does not set


def attributes_of(cls):
    """Return the meaning of each attribute that a docstring names."""
    shown = inspect.getdoc(cls).split("Attributes\n----------\n")[1].split("\n\n")[0]
    return dict(re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", shown, re.MULTILINE))


@pytest.mark.compiled
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_reference_names_the_attributes_that_a_fit_leaves(name):
    cls = getattr(polyplane, name)
    attributes = attributes_of(cls)
    properties = {one for one in members_of(cls) if isinstance(getattr(cls, one), property)}
    model = cls(random_state=0).fit(*make_moons(200, noise=0.1, random_state=0))
    assert {one for one in attributes if hasattr(model, one)} == set(attributes) - OF_TABLES
    assert {one for one in properties if hasattr(model, one)} <= set(attributes)
    assert all(meaning.strip() for meaning in attributes.values())


def first_sentences():
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if place.parts[0] in UNCHECKED:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text is not None:
                    yield (
                        f"{place}: {getattr(node, 'name', '')}",
                        " ".join(text.partition("\n\n")[0].split()),
                    )


def test_first_sentences_stand_alone():
    wrong = [
        f"{place}: {text}"
        for place, text in first_sentences()
        if VAGUE.match(text) or not text.endswith((".", ":", "?"))
    ]
    assert wrong == []
