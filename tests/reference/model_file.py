"""Predictions from a model file, by its description in `docs/model_files.md` alone.

NumPy, JSON and safetensors: nothing of polyplane. All arithmetic is in float64.
"""

import itertools
import json

import numpy as np
from safetensors import safe_open

DOUBT, TIE_BREAK = 0.05, 0.2


class ModelFile:
    """A model file, ready to predict."""

    def __init__(self, path):
        with safe_open(path, framework="np") as file:
            self.metadata = file.metadata()
            self.arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert self.metadata["format"] == "1"
        self.model = json.loads(self.metadata["polyplane"])["prediction"]
        self.labels = self.model["labels"]["values"]
        self.path = "planes" if self.model["planes"] else "support_vectors"
        self.decomposition = self.model[self.path]["decomposition"]
        self.ranks = self.array("decomposition.ranks")

    def array(self, name):
        """Of the planes or of the support vectors."""
        return self.arrays[f"prediction.{self.path}.{name}"].astype(np.float64)

    def wholes(self, name):
        return self.arrays[f"prediction.{self.path}.{name}"].tolist()

    def predict(self, X):
        """Labels: of equal scores the first class wins."""
        return [self.labels[k] for k in self.scores(X).argmax(axis=1)]

    def scores(self, X):
        """Rows by classes."""
        X = self.scaled(np.asarray(X, np.float64))
        if self.path == "planes":
            groups = self.group_scores(X)
            if self.is_joint:
                return groups
            return self.of_leads(groups[:, 1::2] - groups[:, ::2])
        leads = self.kernel_leads(X)
        if self.is_joint:  # two classes, or one
            scores = np.zeros((len(X), len(self.labels)))
            scores[:, self.ranks[1:2].astype(int)] = leads[:, : len(self.labels) - 1]
            return scores
        return self.of_leads(leads)

    def probabilities(self, X):
        """Rows by classes."""
        logs = self.model["planes"]["calibration"] * self.scores(X)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    # ---- rows --------------------------------------------------------------------------------

    def scaled(self, X):
        scaler = self.model["scaler"]
        if scaler is None:
            return X
        scale = self.arrays.get("prediction.scaler.scale", np.ones(1))
        shift = self.arrays.get("prediction.scaler.shift", np.zeros(1))
        X = X * scale + shift if scaler["kind"] == "minmax" else (X - shift) / scale
        return np.clip(X, scaler["low"], scaler["high"]) if scaler["clips"] else X

    def features(self, X):
        """What planes see: a constant, then features."""
        about = self.model["features"]
        constant = about["constant"]
        if about["products"]:
            X, constant = products(X, about["products"]), constant * about["products"]["coef0"]
        elif about["columns"] and about["columns"]["hats"] is not None:
            X = self.with_hats(self.turned(X, about["columns"]))
        elif "prediction.features.columns.used" in self.arrays:
            X = X[:, self.arrays["prediction.features.columns.used"]]
        return np.hstack([np.full((len(X), 1), constant), X])

    def turned(self, X, about):
        """Columns, and directions behind them."""
        if about["turn"] is None:
            return X

        def of(name):
            return self.arrays[f"prediction.features.columns.turn.{name}"]

        ranks = [
            np.interp(X[:, j], of("knots")[a:b], of("ranks")[a:b])
            for j, (a, b) in enumerate(itertools.pairwise(of("knot_starts").tolist()))
            if a < b
        ]
        return np.hstack([X, np.stack(ranks, axis=1) @ of("weights")])

    def with_hats(self, X):
        """Columns without knots, 0 in place of the others, and hats behind them."""
        starts = self.arrays["prediction.features.columns.hats.knot_starts"].tolist()
        knots = self.arrays["prediction.features.columns.hats.knots"]
        linear, hats = X.copy(), np.zeros((len(X), len(knots)))
        for j, (a, b) in enumerate(itertools.pairwise(starts)):
            for k in range(a, b):
                linear[:, j] = 0
                hats[:, k] = np.interp(X[:, j], knots[a:b], np.arange(a, b) == k)
        return np.hstack([linear, hats])

    # ---- planes ------------------------------------------------------------------------------

    def group_scores(self, X):
        """Rows by groups, averaged over the estimators."""
        planes, scales = self.model["planes"], self.array("scales")
        scores = scales * (self.features(X) @ self.array("sums")[:, : len(scales)])
        starts = self.wholes("group_starts")
        groups = np.full((len(X), len(starts) - 1), float(planes["empty_score"]))
        for g, (a, b) in enumerate(itertools.pairwise(starts)):
            if a < b:
                of_group = scores[:, a:b]
                best = of_group.max(axis=1)
                if planes["soft"]:
                    best = best + np.log(np.exp(of_group - best[:, None]).sum(axis=1))
                groups[:, g] = best
        if "prediction.planes.group_weights" in self.arrays:
            weights = self.array("group_weights")  # 0 of groups without planes
            groups = np.where(weights == 0, 0, groups) * weights
        groups = groups.reshape(len(X), planes["estimators"], -1, planes["units"])
        return groups.sum(axis=3).mean(axis=1)

    # ---- kernels -----------------------------------------------------------------------------

    def kernel_leads(self, X):
        """f of each problem on each row."""
        starts, values = self.wholes("problem_starts"), self.kernel_values(X)
        coefs, places = self.array("coefficients"), self.wholes("places")
        sums = [values[:, places[a:b]] @ coefs[a:b] for a, b in itertools.pairwise(starts)]
        return np.stack(sums, axis=1) + self.array("intercepts")

    def kernel_values(self, X):
        about = self.model["support_vectors"]["kernel"]
        if about["name"] == "precomputed":
            return X[:, self.wholes("support.numbers")]
        starts = self.wholes("support.rows.starts")
        support = np.zeros((len(starts) - 1, self.model["columns"]))
        for i, (a, b) in enumerate(itertools.pairwise(starts)):
            columns = self.wholes("support.rows.columns")[a:b]
            support[i, columns] = self.array("support.rows.values")[a:b]
        product = X @ support.T
        if about["name"] == "rbf":
            squares = np.square(X).sum(axis=1)[:, None] + np.square(support).sum(axis=1)
            return np.exp(-about["gamma"] * np.maximum(0, squares - 2 * product))
        if about["name"] == "linear":
            return product
        product = about["gamma"] * product + about["coef0"]
        return product ** about["degree"] if about["name"] == "poly" else np.tanh(product)

    # ---- problems ----------------------------------------------------------------------------

    @property
    def is_joint(self):
        return self.decomposition["kind"] == "joint" or len(self.labels) <= 2

    def of_leads(self, leads):
        """Scores of classes, from by how much each problem's second side leads."""
        kind, combine = self.decomposition["kind"], self.decomposition["combine"]
        if kind == "ovr":
            return self.added(leads, None)
        if combine == "soft":
            chance = 1 / (1 + np.exp(-leads))
            return self.added(np.log(DOUBT + chance), np.log(DOUBT + 1 - chance))
        cut = np.clip(leads, -1, 1)
        margins = self.added(cut, -cut)
        if combine == "margin":
            return margins
        votes = self.added(np.sign(leads) / 2, -np.sign(leads) / 2)
        return votes + TIE_BREAK / len(self.labels) * margins

    def added(self, for_second, for_first):
        scores = np.zeros((len(for_second), len(self.labels)))
        for p, (first, second) in enumerate(self.problems()):
            scores[:, int(self.ranks[second])] += for_second[:, p]
            if for_first is not None:
                scores[:, int(self.ranks[first])] += for_first[:, p]
        return scores

    def problems(self):
        """Both sides of each, as classes in the order in which training met them."""
        n = len(self.labels)
        if self.decomposition["kind"] == "ovo":
            return [(a, b) for b in range(1, n) for a in range(b)]
        return [(None, k) for k in (1, 0, *range(2, n))]


def products(X, about):
    """Products of two columns, hashed where there are too many."""
    gamma, r, columns = about["gamma"], about["coef0"], []
    for j in range(X.shape[1]):
        columns.append(np.sqrt(2 * gamma * r) * X[:, j])
        columns += [
            (gamma if i == j else np.sqrt(2) * gamma) * X[:, i] * X[:, j] for i in range(j + 1)
        ]
    if about["hashed"] is None:
        return np.stack(columns, axis=1)
    out = np.zeros((len(X), about["hashed"]))
    for number, column in enumerate(columns):
        bits = mixed(number)
        sign = 1 - 2 * (bits & 1)
        out[:, (bits >> 31) * about["hashed"] >> 32] += sign * column
    return out


def mixed(number):
    """The steps of splitmix64, modulo 2^63."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 % 2**63
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**63
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**63
    return bits ^ bits >> 31
