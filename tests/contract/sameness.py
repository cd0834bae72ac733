"""When two models are the same, whatever their machine, and what may be asked of any machine."""

from dataclasses import fields

import joblib
import numpy as np
import scipy.sparse as sp

OUTPUTS = "decision_function", "predict", "plane_scores", "assign"
OF_PLANES = "planes_", "intercepts_", "plane_classes_"
OF_SUPPORT = "support_vectors_", "dual_coef_", "intercept_", "n_support_", "gamma_"


def has_planes(model):
    """Whether its machine trains hyperplanes; the others hold support vectors."""
    return hasattr(model, "plane_scores")


def scores_of(model, X):
    """All that prediction says about the rows."""
    return [getattr(model, output)(X) for output in OUTPUTS if hasattr(model, output)]


def assert_same_scores(model, other, X):
    for ours, theirs in zip(scores_of(model, X), scores_of(other, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def assert_same_model(model, other, words=""):
    """The same numbers were learned; which rows of X they come from does not matter."""
    for name in OF_PLANES if has_planes(model) else OF_SUPPORT:
        ours, theirs = (as_array(getattr(each, name)) for each in (model, other))
        np.testing.assert_array_equal(ours, theirs, words)


def as_array(values):
    """Support vectors of sparse rows are sparse, and gamma is used as float32."""
    if isinstance(values, float):
        return np.float32(values)
    return values.toarray() if sp.issparse(values) else values


def lasting_state(model):
    """Return a digest of all but times, and results that are derived anew when asked for."""
    training = model._training
    lasting = {name: value for name, value in vars(model).items() if name != "_training"}
    report = lasting.pop("_fit_report", {})
    lasting["trials"] = [{**trial, "seconds": 0} for trial in report.get("trials", [])]
    lasting["expected"] = report.get("expected")
    of_training = {field.name: getattr(training, field.name) for field in fields(training)}
    if not has_planes(model):
        of_training |= {
            "pool": training.pool.rows,  # without its spare room, whose content means nothing
            "models": [plain_state(kernel_model) for kernel_model in training.models],
            "generator": training.generator,
        }
    return joblib.hash([lasting, of_training])


def plain_state(kernel_model):
    """Shape and content of arrays; empty ones may be equal and yet have other strides."""
    held = {name: (a.shape, a.tobytes()) for name, a in kernel_model.held._asdict().items()}
    return vars(kernel_model) | {"held": held}


def set_where_there(estimator, **parameters):
    """Set those parameters that the machine has."""
    there = {name: parameters[name] for name in parameters.keys() & estimator.get_params().keys()}
    return estimator.set_params(**there)


def with_given_gamma(estimator):
    """Give the kernel a width of its own, where it would be taken from the first chunk."""
    is_taken = getattr(estimator, "gamma", None) == "scale"
    return estimator.set_params(gamma=0.1) if is_taken else estimator
