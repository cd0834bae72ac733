"""A training that consists of several: members, and how much the scores of each weigh.

Each member is an estimator with planes of its own, trained on the same rows and classes. The score
of a class is the weighted sum of the members' scores.
"""

from dataclasses import dataclass, field
from typing import Any

from polyplane.training.blended.folding import Folded, folded
from polyplane.training.soft_planes.mapped_columns import FoldedColumns
from polyplane.training.state import ClassesMet
from polyplane.training.work.interruption import SeenRows

__all__ = ["BlendAlgorithm", "BlendedTraining", "Member"]

NO_ROWS = SeenRows(0, 0)


@dataclass(frozen=True)
class BlendAlgorithm:
    """Algorithm of a blend, as far as model files ask for it."""

    columns: type[FoldedColumns] = FoldedColumns
    searched: tuple[str, ...] = ()
    is_soft: bool = True


@dataclass
class Member:
    """An estimator of a blend."""

    name: str  # of its recipe
    share: float  # of the blend, in which shares sum to 1
    weight: float  # factor of its scores: the share, times what makes them log-odds
    estimator: Any
    is_done: bool = True  # False while it is still to be trained on all rows
    statistics: str = "none"  # target statistics that it reads

    @property
    def training(self) -> Any:
        """Training of the estimator, or None before its first row."""
        return vars(self.estimator).get("_training")


@dataclass
class BlendedTraining(ClassesMet):
    """State of a blend between calls of `fit` and `partial_fit`."""

    n_columns: int = 0
    n_passes: int = 0  # of the latest fit, of the member with most
    constant: float = 1.0
    members: list[Member] = field(default_factory=list)
    interim: Member | None = None  # predicts until the first member is done
    rows_seen: SeenRows = NO_ROWS  # by the latest fit
    are_recipes_chosen: bool = True  # False after an interruption while they were tried

    @property
    def is_unfinished(self) -> bool:
        """Return whether a fit was interrupted."""
        is_missing = any(not member.is_done for member in self.members)
        return is_missing or not self.are_recipes_chosen

    @property
    def blended(self) -> list[Member]:
        """Members that predict: those that are done, or the one in their place."""
        done = [member for member in self.members if member.is_done]
        if done or self.interim is None:
            return done
        return [self.interim]

    @property
    def models(self) -> list[Any]:
        """Models of all members that predict."""
        return [model for member in self.blended for model in member.training.models]

    @property
    def origin(self) -> object:
        """Identity of the training: members are restored by themselves."""
        return self

    def goes_on_from(self, before: Any) -> bool:
        """Return True if it is the training that was there before."""
        return before is self

    @property
    def found(self) -> dict[str, Any]:
        """No parameter is left to the fit."""
        return {}

    @property
    def folded(self) -> Folded:
        """The one model that members make together, derived once until they learn on."""
        state = tuple(
            (member.name, member.weight, [(one.n_steps, id(one.planes.owner)) for one in models])
            for member in self.blended
            for models in [member.training.models]
        )
        known: tuple[object, Folded] | None = vars(self).get("_folded")
        if known is None or known[0] != state:
            known = state, folded(self.blended, self.ranks)
            vars(self)["_folded"] = known
        return known[1]

    @property
    def columns(self) -> FoldedColumns:
        """Return the view of the columns by the planes of the blend."""
        return FoldedColumns.of_map(self.folded.columns)

    @property
    def n_steps(self) -> int:
        """Steps of all models."""
        return sum(model.n_steps for model in self.models)
