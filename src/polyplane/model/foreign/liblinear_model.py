"""Reader of models that LIBLINEAR's `train` writes.

Keys     `solver_type`, `nr_class`, `label`, `nr_feature`, `bias` (the value of a last feature that
         all rows have; none if it is negative).
Rows     after `w`, one a feature: its weight for each class, or with two classes, unless the
         solver is MCSVM_CS, one weight; then w x > 0 speaks for the first label.
Format   README and linear.cpp of LIBLINEAR 2.50, https://www.csie.ntu.edu.tw/~cjlin/liblinear
"""

from dataclasses import dataclass

import numpy as np

from polyplane.arrays import Array
from polyplane.model.foreign.model_text import TextModel, number_rows

__all__ = ["PlanesText", "liblinear_model"]

JOINT = "MCSVM_CS"
CLASSIFIERS = (
    "L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", JOINT,
    "L1R_L2LOSS_SVC", "L1R_LR", "L2R_LR_DUAL",
)  # fmt: skip
OTHERS = {
    "L2R_L2LOSS_SVR": "a regression",
    "L2R_L2LOSS_SVR_DUAL": "a regression",
    "L2R_L1LOSS_SVR_DUAL": "a regression",
    "ONECLASS_SVM": "a one-class SVM",
}


@dataclass(frozen=True)
class PlanesText:
    """A plane of each class: a row is of the class of the plane that scores highest."""

    labels: Array
    weights: Array  # [class, feature]
    intercepts: Array  # [class]
    has_intercept: bool


def liblinear_model(model: TextModel) -> PlanesText:
    """The classifier that a file of LIBLINEAR holds."""
    solver = model.classifier("solver_type", CLASSIFIERS, OTHERS)
    n_classes = model.whole("nr_class", 2)
    labels = model.labels("label", n_classes)
    n_features = model.whole("nr_feature", 1)
    bias = model.number("bias")
    n_columns = 1 if n_classes == 2 and solver != JOINT else n_classes
    n_rows = n_features + (bias >= 0)
    model.check_rows(n_rows, "nr_feature")
    w = number_rows(model.body, n_columns, model.first_line, model.path)
    weights = np.hstack([w / 2, -w / 2]) if n_columns == 1 else w
    intercepts = bias * weights[n_features] if bias > 0 else np.zeros(n_classes)
    return PlanesText(labels, weights[:n_features].T, intercepts, bias > 0)
