"""Parameters of algorithms whose classes grow planes as the data ask."""

from typing import Any

from polyplane.estimator.parameters import at_least, either, is_flag, one_of, parameter

__all__ = ["grown_rivals", "interval_of_pruning", "most_planes"]


def interval_of_pruning() -> Any:
    """Return the parameter `prune_interval`."""
    return parameter(
        default=10_000,
        allowed=at_least(1),
        meaning="Steps between prunings, k of the papers.",
    )


def most_planes() -> Any:
    """Return the parameter `max_planes`."""
    return parameter(
        default=None,
        allowed=either(one_of(None), at_least(1)),
        meaning="Most planes of one class; None for any number.",
    )


def grown_rivals() -> Any:
    """Return the parameter `grow_rivals`."""
    return parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let an update create a plane for a rival class, too, as the AMM paper has it.",
    )
