"""`import_model`: text models of LIBSVM, LIBLINEAR and BudgetedSVM as fitted estimators.

LIBSVM       LaSVMClassifier: the same pairs of classes with the same votes. Its steps want the
             gradient of every support vector, so that importing costs as much as scoring them all.
LIBLINEAR    PegasosClassifier: a plane of each class.
BudgetedSVM  PegasosClassifier, AMMClassifier: the same planes. KernelPegasosClassifier of BSGD.

What the files do not tell is settled so that training can go on. Pegasos steps want alpha and the
count t of rows so far: they are taken for 1e-4 and 10,000, which is one pass with LIBLINEAR's
default, C = 1 / (alpha t) = 1, unless the degradations of BudgetedSVM tell. C of LIBSVM is the
largest coefficient, and that of a class the bound of its vectors.
"""

import io
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

import polyplane
from polyplane.data.chunks import BadRows, DataError
from polyplane.data.libsvm_rows import RowReader
from polyplane.data.text_blocks import TextBlock, TextBlocks
from polyplane.engine.gram import squared_lengths
from polyplane.engine.inspection import largest_magnitude
from polyplane.engine.order import in_place
from polyplane.engine.planes import Array, count_planes, with_classes, with_planes, zero_planes
from polyplane.engine.rows import CsrRows, packed
from polyplane.engine.support_set import ACTIVE, INSERTED, OF_SIDE, SLOTS, SupportSet, with_room
from polyplane.engine.tiles import LANES
from polyplane.estimator.kernel_training import KernelModel, KernelTraining, SupportRows
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.validation import LARGEST, TrainingData
from polyplane.model.decomposition import Problem
from polyplane.model.file import ModelError
from polyplane.model.kernels import KernelRows, kernel_block, no_rows
from polyplane.model.text_model_budgeted import BudgetText, SparsePlanesText, budgeted_model
from polyplane.model.text_model_liblinear import PlanesText, liblinear_model
from polyplane.model.text_model_libsvm import SvmText, libsvm_model
from polyplane.model.text_models import SparseText, TextModel, is_text_model, read_text_model

__all__ = ["import_model", "is_text_model"]
