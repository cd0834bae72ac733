"""Facts that a fit knows about its model, as plain values: the error to expect on new rows."""

from collections.abc import Mapping
from typing import Any

__all__ = ["Z_95", "expected_words"]

Z_95 = 1.96  # standard errors on both sides of a 95% interval


def expected_words(expected: Mapping[str, Any]) -> str:
    """Return the error, log-loss and AUC to expect, beside the error of a linear model."""
    model, linear = expected["model"], expected["linear"]
    beside = "" if linear is None else f" (a linear model: {linear['error']:.1%})"
    area = "" if model["auc"] is None else f", AUC {model['auc']:.3f}"
    return (
        f"error {model['error']:.1%} ± {100 * Z_95 * model['error_se']:.1f}{beside}, "
        f"log-loss {model['log_loss']:.3g}{area}"
    )
