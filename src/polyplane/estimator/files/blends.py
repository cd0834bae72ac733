"""The training part of a blend: each member as a model of its own, with its weight.

What predicts is the folded model of the prediction part; the planes of members are made again of
what they have learned.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.estimator.files.training_tables import SEEN_ROWS, TABLES
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.fitting.streams import give_stream_course, stream_course_of
from polyplane.estimator.fitting.thread_safety import remember
from polyplane.estimator.online_classifier import give_training
from polyplane.model.format.checks import need
from polyplane.model.format.schema import (
    Count,
    Flag,
    Json,
    Many,
    Maybe,
    Nested,
    Number,
    Reader,
    Settings,
    Table,
    Text,
    Word,
    Writer,
)
from polyplane.model.prediction import FittedModel
from polyplane.training.blended.training import BlendedTraining, Member
from polyplane.training.soft_planes.mapped_columns import MappedColumns
from polyplane.training.state import known_classes

__all__ = ["PackedModel", "read_blend", "write_blend"]

PATH = "training.blend"


class PackedModel(NamedTuple):
    """Content of a model file as plain arrays, to travel between processes."""

    values: str  # JSON
    arrays: Mapping[str, Array]
    shape_of_planes: tuple[int, ...] | None = None  # that stay behind: the training tells them

    def count_bytes(self) -> int:
        """Return the number of bytes that travel."""
        return len(self.values) + sum(array.nbytes for array in self.arrays.values())


class _PlainMember(NamedTuple):
    """A member as a file holds it."""

    recipe: str
    share: float
    weight: float
    done: bool
    settings: dict[str, Any]
    model: Any  # as a file of its own would hold it, without arrays; None before its first row
    shape: Any  # of planes that predict, which are left out
    statistics: str  # target statistics that it reads


MEMBER = Table(
    _PlainMember,
    {
        "recipe": Text(),
        "share": Number(0, 1),
        "weight": Number(),
        "done": Flag(),
        "settings": Settings(),
        "model": Json(),
        "shape": Maybe(Many(Count())),
        "statistics": Word(("none", "target")),
    },
)


class _PlainBlend(NamedTuple):
    """A blend as a file holds it."""

    seed: int
    rows_seen: Any
    recipes_chosen: bool
    members: list[_PlainMember]
    interim: _PlainMember | None


BLEND = Table(
    _PlainBlend,
    {
        "seed": Count(),
        "rows_seen": Nested(SEEN_ROWS),
        "recipes_chosen": Flag(),
        "members": Many(Nested(MEMBER)),
        "interim": Maybe(Nested(MEMBER)),
    },
)


# ---- writing -----------------------------------------------------------------------------


def write_blend(estimator: Any, out: Writer, pack: Callable[[Any], PackedModel]) -> dict[str, Any]:
    """Return the training part as JSON; its arrays go to `out`. `pack` packs a member."""
    training: BlendedTraining = training_of(estimator)
    plain = _PlainBlend(
        training.seed,
        training.rows_seen,
        training.are_recipes_chosen,
        [_plain(member, f"{PATH}.{k}", out, pack) for k, member in enumerate(training.members)],
        None
        if training.interim is None
        else _plain(training.interim, f"{PATH}.interim", out, pack),
    )
    stream = stream_course_of(estimator)
    return {
        "blend": BLEND.write(plain, PATH, out),
        "stream": None
        if stream is None
        else TABLES["stream"].write(stream, "training.stream", out),
    }


def _plain(
    member: Member, path: str, out: Writer, pack: Callable[[Any], PackedModel]
) -> _PlainMember:
    settings, model, shape = member.estimator.get_params(deep=False), None, None
    if member.training is not None:
        found = pack(member.estimator)
        model = json.loads(found.values)
        shape = None if found.shape_of_planes is None else list(found.shape_of_planes)
        out.arrays.update({f"{path}.{name}": array for name, array in found.arrays.items()})
    return _PlainMember(
        member.name,
        member.share,
        member.weight,
        member.is_done,
        settings,
        model,
        shape,
        member.statistics,
    )


# ---- reading -----------------------------------------------------------------------------


def read_blend(
    plain: Any,
    arrays: Mapping[str, Array],
    estimator: Any,
    model: FittedModel,
    unpack: Callable[[PackedModel], Any],
) -> None:
    """Give an estimator its training; `unpack` makes a member again and checks it."""
    source = Reader(dict(arrays))
    found: _PlainBlend = BLEND.read(plain.get("blend"), PATH, source)
    record: Any = model.record
    training = BlendedTraining(
        kind="joint",
        seed=found.seed,
        known=known_classes(model.labels[record.decomposition.ranks]),
        n_columns=model.n_columns,
        n_passes=model.n_passes,
        rows_seen=found.rows_seen,
        are_recipes_chosen=found.recipes_chosen,
    )
    made = estimator.member_of
    for k, one in enumerate(found.members):
        training.members.append(_member(one, f"{PATH}.{k}.", arrays, made, unpack))
    if found.interim is not None:
        training.interim = _member(found.interim, f"{PATH}.interim.", arrays, made, unpack)
    need(bool(training.blended), "a blend has no members")
    for member in [*training.members, training.interim]:
        if member is not None and member.training is not None:
            _check_member(member, training)
        elif member is not None:
            need(not member.is_done, "a member has learned nothing")
    folded = training.folded
    is_like = folded.record.sums.shape == record.sums.shape
    need(is_like and folded.record.n_planes == record.n_planes, "planes are of other members")
    need(folded.record.n_units == record.n_units, "planes are of other members")
    give_training(estimator, training)
    remember(estimator, record)
    if plain.get("stream") is not None:
        course = TABLES["stream"].read(plain["stream"], "training.stream", source)
        give_stream_course(estimator, course)


def _member(
    plain: _PlainMember,
    path: str,
    arrays: Mapping[str, Array],
    made: Callable[[dict[str, Any]], Any],
    unpack: Callable[[PackedModel], Any],
) -> Member:
    if plain.model is None:
        estimator = made(plain.settings)
        return Member(
            plain.recipe, plain.share, plain.weight, estimator, plain.done, plain.statistics
        )
    own = {name[len(path) :]: one for name, one in arrays.items() if name.startswith(path)}
    shape = None if plain.shape is None else tuple(plain.shape)
    estimator = unpack(PackedModel(json.dumps(plain.model), own, shape))
    need(type(estimator) is type(made({})), "a member is of another algorithm")
    return Member(plain.recipe, plain.share, plain.weight, estimator, plain.done, plain.statistics)


def _check_member(member: Member, training: BlendedTraining) -> None:
    """Demand that a member is of the same classes and columns as the blend."""
    own = member.training
    need(isinstance(own.models, list) and len(own.models) > 0, "a member has no models")
    need(np.array_equal(own.labels, training.labels), "a member is of other classes")
    need(own.n_columns == training.n_columns, "a member is of other columns")
    need(isinstance(own.columns, MappedColumns), "a member is of other columns")
    need(own.kind in ("joint", "ovr"), "a member cannot be blended")
