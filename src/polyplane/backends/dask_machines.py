"""Estimators that a cluster trains by rounds, and errors for all others."""

from collections.abc import Callable
from typing import Any

from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.convex_polytope import CPMClassifier
from polyplane.hyperplane.growing_amm import GAMMClassifier
from polyplane.hyperplane.multi_hyperplane import MMClassifier
from polyplane.hyperplane.passive_aggressive import PassiveAggressiveClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.poly2 import Poly2Classifier
from polyplane.hyperplane.soft_planes import SoftPlanesClassifier
from polyplane.hyperplane.sparse_amm import SAMMClassifier
from polyplane.training.finished import check_can_learn_on

__all__ = ["check_mixable", "is_to_go_on"]

MIXABLE = (
    AMMClassifier, CPMClassifier, MMClassifier, PassiveAggressiveClassifier, PegasosClassifier,
    Poly2Classifier, SoftPlanesClassifier,
)  # fmt: skip
WHY_NOT = {
    GAMMClassifier: "clones carry the past of their plane, and a mixture would count it twice",
    SAMMClassifier: "its penalty acts by the steps of a whole training, which a mixture cuts short",
}
UNFIT_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "early_stopping": (bool, "set it to False, and look at evaluate"),
    "mode": (lambda v: v != "online", "set it to 'online'"),
    "max_steps": (lambda v: v is not None, "leave it None, and give rounds"),
    "warm_start": (bool, "set it to False; resume=True goes on from a model"),
}


def check_mixable(estimator: Any) -> None:
    """Refuse what no mixture is right for, and say why."""
    name = type(estimator).__name__
    if not isinstance(estimator, PlaneClassifier):
        raise TypeError(
            f"{name} is no estimator of polyplane that a cluster trains: "
            f"choose one of {', '.join(kind.__name__ for kind in MIXABLE)}."
        )
    if type(estimator) not in MIXABLE:
        why = WHY_NOT.get(type(estimator), "nobody has shown that its planes may be averaged")
        raise TypeError(
            f"{name} cannot be trained on a cluster: {why}; choose one of "
            f"{', '.join(kind.__name__ for kind in MIXABLE)}."
        )
    check_parameters(estimator)
    for setting, (is_unfit, remedy) in UNFIT_SETTINGS.items():
        value = getattr(estimator, setting, None)
        if hasattr(estimator, setting) and is_unfit(value):
            raise ValueError(
                f"{name}: {setting}={value!r} needs all rows at once, or goes on elsewhere, which "
                f"a cluster does not: {remedy}."
            )


def is_to_go_on(estimator: Any, resume: bool) -> bool:
    """Return True if there is a training to go on from, where that is wanted."""
    if not resume:
        return False
    if training_of(estimator) is None:
        raise ValueError(f"{type(estimator).__name__} is not fitted: there is nothing to resume.")
    check_can_learn_on(estimator)
    return True
