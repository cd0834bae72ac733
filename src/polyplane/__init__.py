"""polyplane: nonlinear classifiers at the price of linear ones.

    bytes -> rows -> engine -> model -> prediction / report

`data` reads rows, `engine` trains on them in compiled loops, `model` is what is left, `estimator`
is the scikit-learn face that `hyperplane` and `kernel` machines fill in, `report` looks at results.
Names are loaded when they are first used, so importing the package costs nothing.
"""

import importlib
from typing import Any

from polyplane.quick_imports import no_collection

__version__ = "0.1.0"

_HOMES = {
    "AMMClassifier": "polyplane.hyperplane.amm",
    "AROWClassifier": "polyplane.hyperplane.arow",
    "CPMClassifier": "polyplane.hyperplane.convex_polytope",
    "DataError": "polyplane.data.chunks",
    "GAMMClassifier": "polyplane.hyperplane.growing_amm",
    "HullerClassifier": "polyplane.kernel.huller",
    "KernelPegasosClassifier": "polyplane.kernel.kernel_pegasos",
    "KernelPerceptronClassifier": "polyplane.kernel.kernel_perceptron",
    "LaSVMClassifier": "polyplane.kernel.lasvm",
    "MMClassifier": "polyplane.hyperplane.multi_hyperplane",
    "PassiveAggressiveClassifier": "polyplane.hyperplane.passive_aggressive",
    "PegasosClassifier": "polyplane.hyperplane.pegasos",
    "PolyplaneClassifier": "polyplane.portfolio.polyplane_classifier",
    "Poly2Classifier": "polyplane.hyperplane.poly2",
    "ModelError": "polyplane.model.format.model_file",
    "NystromClassifier": "polyplane.kernel.nystrom",
    "SAMMClassifier": "polyplane.hyperplane.sparse_amm",
    "SoftPlanesClassifier": "polyplane.hyperplane.soft_planes",
    "alpha_path": "polyplane.tuning.alpha_path",
    "compare": "polyplane.tuning.comparison",
    "explore": "polyplane.tuning.exploration",
    "import_model": "polyplane.estimator.files.importing",
    "load": "polyplane.estimator.files.saving",
    "read": "polyplane.data.reading",
    "save": "polyplane.estimator.files.saving",
    "show_versions": "polyplane.versions",
    "stream": "polyplane.data.reading",
    "to_c": "polyplane.estimator.files.exporting",
    "to_onnx": "polyplane.estimator.files.exporting",
    "to_sql": "polyplane.estimator.files.exporting",
}
_MODULES = {"plots": "polyplane.report.plots"}
__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'polyplane' has no attribute {name!r}")
    with no_collection():
        if name in _MODULES:
            return importlib.import_module(_MODULES[name])
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
