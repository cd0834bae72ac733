"""The table of data sets: what is known of each, read from registry.toml when first asked for."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any

__all__ = ["DataFile", "DataSet", "Figure", "registered"]


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file that is one part of a set; others, packed otherwise, may be the same part."""

    part: str  # train, test, train labels, test labels
    name: str
    size: int | None = None  # bytes, as the file is stored
    sha256: str | None = None  # of the file as it is stored
    url: str | None = None  # of the public file with this name


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a paper reports of a machine on a set."""

    paper: str
    machine: str
    error_percent: float
    task: str = ""  # where a set is used for several
    train_seconds: float | None = None  # on the authors' computer
    n_planes: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """All facts about a data set."""

    name: str
    title: str
    source: str
    rows_train: int
    rows_test: int | None = None  # None where there is no test part
    n_features: int
    n_classes: int
    home: str  # the public page that describes it
    licence: str
    scaling: str
    notes: str = ""
    why_no_download: str = ""  # empty where every part has a file with a URL
    format: str = "libsvm"  # or idx
    files: tuple[DataFile, ...]
    figures: tuple[Figure, ...] = ()


@functools.cache
def registered() -> Mapping[str, DataSet]:
    """All data sets by their names."""
    file = resources.files("polyplane.data.sets").joinpath("registry.toml")
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return MappingProxyType({name: _data_set(name, facts) for name, facts in table.items()})


def _data_set(name: str, facts: dict[str, Any]) -> DataSet:
    files = tuple(DataFile(**file) for file in facts.pop("files"))
    figures = tuple(Figure(**figure) for figure in facts.pop("figures", ()))
    return DataSet(name=name, files=files, figures=figures, **facts)
