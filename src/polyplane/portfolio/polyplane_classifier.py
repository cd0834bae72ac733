"""PolyplaneClassifier: every recipe of a table tried once, blended, and folded into one model.

Problem     which settings of sums of soft maxima of planes (`hyperplane/soft_planes.py`) suit the
            data at hand, and what error to expect of them on new rows
Algorithm   (1) Split: up to 10,000 rows to try on, up to 20,000 others to judge by.
            (2) Try: every recipe of the table (`recipes.py`) is trained once.
            (3) Blend: greedy selection with repetition by log-loss, in scores (`blend.py`).
            (4) Refit: the chosen recipes are trained on all rows.
            (5) Fold: all of them become one model (`training/blended/folding.py`).
Estimate    the error to expect is that of the blend on the judged rows, cross-fitted
            (`expected.py`).
Streams     `partial_fit` without a fit is one training with the settings `STREAM`; after a fit it
            goes on with all members, in small steps.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from polyplane.arrays import Array
from polyplane.data.table.statistics import TargetStatistics
from polyplane.engine.order import in_place
from polyplane.estimator.answers.plane_answers import PlanePrediction
from polyplane.estimator.fitting.kept_rows import forget_rows, keep_some_rows
from polyplane.estimator.fitting.restoring import (
    check_can_resume,
    check_same_rows,
    restoring,
    training_of,
)
from polyplane.estimator.fitting.streams import RowStream, check_alone, fit_stream, forget_stream
from polyplane.estimator.fitting.thread_safety import writes
from polyplane.estimator.input.tables import keep_keys_again, layout_of, take_keys, width_of
from polyplane.estimator.input.validation import (
    check_class_weights,
    check_weights_are_known,
    read_matrix,
    read_matrix_and_labels,
    read_training,
)
from polyplane.estimator.online_classifier import A_NUMBER_OF_THREADS, OnlineClassifier
from polyplane.estimator.parameters import Range, check_parameters, parameter, register, whole
from polyplane.estimator.shell import job_of
from polyplane.hyperplane.soft_planes import SoftPlanesClassifier
from polyplane.model.plane_record import PlaneRecord
from polyplane.portfolio.blend import matching_factor
from polyplane.portfolio.expected import Expected
from polyplane.portfolio.fit import (
    GivenRows,
    PortfolioFit,
    blended_members,
    refit_members,
    split_rows,
)
from polyplane.portfolio.recipes import (
    OF_THE_VIEW,
    RECIPES,
    STATISTICS,
    STREAM,
    settings_of,
)
from polyplane.portfolio.trials import scores_of_member
from polyplane.training.blended.training import BlendAlgorithm, BlendedTraining, Member
from polyplane.training.finished import check_can_learn_on
from polyplane.training.job import NewRows
from polyplane.training.planes.family import PLANES, meet_chunk
from polyplane.training.planes.passes import learn_chunk
from polyplane.training.rows import TrainingData, codes_of, mean_weight_is_one, weighty
from polyplane.training.state import known_classes
from polyplane.training.work.interruption import seen_rows
from polyplane.training.work.progress import progress

__all__ = ["PolyplaneClassifier", "with_member"]

SETTINGS = "a list of names of recipes, or a dict from name to settings"


def _are_recipes(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, Mapping):
        return len(value) > 0 and all(isinstance(one, Mapping) for one in value.values())
    names = {recipe.name for recipe in RECIPES}
    return isinstance(value, list | tuple) and len(value) > 0 and set(value) <= names


@register
class PolyplaneClassifier(PlanePrediction, OnlineClassifier):
    """Nonlinear classifier at the price of a linear one, with probabilities and nothing to set.

    A fit tries every recipe of a table once on a part of the rows, blends the best of them,
    trains these on all rows, and folds them into one model: sums of soft maxima of planes. It
    then knows what error to expect on new rows (`expected_`).

    Attributes
    ----------
    trials_ : DataFrame, or list of dict without pandas
    expected_ : Expected or None
    recipes_ : dict of str to dict

    See Also
    --------
    SoftPlanesClassifier : The algorithm behind all recipes, with given settings.
    explore : Compares algorithms of different kinds on the same rows.

    Notes
    -----
    The model is a weighted sum of members m. Each scores a class c by sums of soft maxima::

        g_c(x) = sum_m weight_m sum_u log sum_{j in unit u} exp(w_mcj phi_m(x))
        P(c | x) = exp(g_c(x)) / sum_k exp(g_k(x))

    phi_m is the map of the columns that the recipe of a member asks for. The algorithm is
    polyplane's own; docs/polyplane.md describes and measures it.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import PolyplaneClassifier
    >>> model = PolyplaneClassifier(quality=1, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> model.predict_proba(X_test).shape
    (200, 2)
    >>> model.explain(X_test[:3]).contributions.shape
    (3, 2)
    """

    quality: int = parameter(
        default=2,
        allowed=whole(1, 3),
        meaning=(
            "1 tries a few recipes on few rows and is fastest, 2 tries all recipes, 3 tries all on "
            "several splits of the rows and trains more models of each that is chosen."
        ),
    )
    recipes: Any = parameter(
        default=None,
        allowed=Range(_are_recipes, f"None, {SETTINGS}"),
        meaning=(
            "Recipes to try: those of the table (None), some of them by name, or settings of "
            "SoftPlanesClassifier by a name of your own. With a weight in each dict, as in "
            "`recipes_` of a fitted model, they are blended by it without a trial."
        ),
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning="Threads for recipes side by side and for prediction; -1 uses all cores.",
    )

    algorithm: ClassVar[BlendAlgorithm] = BlendAlgorithm()
    family: ClassVar[Any] = PLANES  # of its members
    KEEPS_KEYS: ClassVar[bool] = True  # of tables, for target statistics
    combine: ClassVar[str] = "soft"
    shuffle: ClassVar[bool] = True  # of streams
    warm_start: ClassVar[bool] = False  # of streams

    # ---- training --------------------------------------------------------------------------

    @writes
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, eval_set: Any = None
    ) -> Self:
        """Try recipes, blend them, and train the blend on the rows of X.

        Of a stream, the training is that of `partial_fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, table or polyplane.stream of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table; a stream holds the
            labels, too.
        y : array-like of shape (n_rows,), optional
            Labels: numbers, texts or truth values. Left out with a stream.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default. Left out with a stream.
        eval_set : tuple or list of one tuple, optional
            Pair (X, y): recipes are judged by these rows instead of a part of X.

        Returns
        -------
        Self
            The estimator.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight, eval_set=eval_set)
            forget_rows(self)
            return fit_stream(self, X)
        with restoring(self):
            check_parameters(self)
            check_recipes(self.recipes)
            given, labels = self._read_rows(X, y, sample_weight, eval_set, None)
            data = given.data
            self._check_two_classes(data, labels)
            check_class_weights(self, labels)
            forget_stream(self)
            self._forget("_fit_report", "_trial_estimators")
            self._training = BlendedTraining(
                kind="joint",
                seed=self._draw_seed(),
                known=known_classes(labels),
                n_columns=width_of(self),
                rows_seen=seen_rows(data.labels),
                are_recipes_chosen=False,
            )
            self.classes_ = self._training.classes
            self._run(given)
            keep_some_rows(self, X)
        return self

    @writes
    def resume(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, eval_set: Any = None
    ) -> Self:
        """Go on with a fit that was interrupted, given the same rows again.

        The model becomes what it would have been without the interruption, to the bit.

        Parameters
        ----------
        X : array-like, sparse matrix, table or polyplane.stream of shape (n_rows, n_features)
            Rows of the fit that was interrupted. A table is a DataFrame of pandas or polars, or an
            Arrow table; a stream holds the labels, too.
        y : array-like of shape (n_rows,), optional
            Labels: numbers, texts or truth values. Left out with a stream.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default. Left out with a stream.
        eval_set : tuple or list of one tuple, optional
            Pair (X, y) of the fit, if it had one.

        Returns
        -------
        Self
            The estimator.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight, eval_set=eval_set)
            return fit_stream(self, X, resumes=True)
        with restoring(self):
            check_is_fitted(self)
            check_parameters(self)
            check_can_learn_on(self)
            training: BlendedTraining = self._training
            check_can_resume(self, training.is_unfinished)
            known = training.labels
            keep_keys_again(self)
            given, _ = self._read_rows(X, y, sample_weight, eval_set, known)
            check_same_rows(self, seen_rows(given.data.labels), training.rows_seen)
            self._run(given)
        return self

    @writes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of X once, in the order given; new classes and columns are welcome.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.
        y : array-like of shape (n_rows,)
            Labels, of classes that may be new.
        classes : array-like of shape (n_classes,), optional
            Labels of classes that are to come. Announcing them is optional.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default.

        Returns
        -------
        Self
            The estimator.
        """
        with restoring(self):
            check_parameters(self)
            check_can_learn_on(self)
            check_weights_are_known(self)
            before: BlendedTraining | None = vars(self).get("_training")
            known = None if before is None else before.labels
            data, labels = read_training(self, X, y, classes, sample_weight, known, 1.0, True)
            if before is None:
                self._forget("_fit_report", "_trial_estimators")
            training = before or self._begun_stream(labels)
            rows = NewRows(data, labels, width_of(self), training.seed, is_chunk=True)
            members = weighty(in_place(data.labels.size), data.weights)
            chunks = [
                (member, job, *meet_chunk(job, member.training, rows, members))
                for member in training.blended
                for job in [job_of(member.estimator, {})]
            ]
            self._training = training
            training.members = [member for member, *_ in chunks]
            training.interim, training.are_recipes_chosen = None, True
            training.known, training.n_columns = known_classes(labels), width_of(self)
            self.classes_ = training.classes
            for member, _, reached, *_ in chunks:
                member.estimator._training = reached
                member.estimator.n_features_in_ = width_of(self)
            with progress(type(self).__name__, data.labels.size, bool(self.verbose)) as report:
                for _, job, reached, seen, own in chunks:
                    learn_chunk(job, reached, seen, own, report)
        return self

    def _begun_stream(self, labels: Array) -> BlendedTraining:
        """Return a training with one member, before its first row."""
        seed = self._draw_seed()
        algorithm = SoftPlanesClassifier(**STREAM, random_state=seed, n_jobs=self.n_jobs)
        training = BlendedTraining("joint", seed, known_classes(labels), width_of(self), 1)
        training.members = [Member("stream", 1.0, 1.0, algorithm)]
        return training

    # ---- the steps of a fit ------------------------------------------------------------------

    def _run(self, given: GivenRows) -> None:
        """Make what is left of a fit: split, try, blend, refit, fold."""
        training: BlendedTraining = self._training
        fit = PortfolioFit(
            title=type(self).__name__,
            quality=self.quality,
            recipes=self.recipes,
            n_threads=effective_n_jobs(self.n_jobs),
            shows_progress=bool(self.verbose),
            given=given,
            training=training,
            read_with=self._read_with,
            report=dict(vars(self).get("_fit_report", {})),
            estimators=vars(self).get("_trial_estimators", {}),
        )
        rows = split_rows(fit)
        if not training.are_recipes_chosen:
            training.members = blended_members(fit, rows)
            training.interim, training.are_recipes_chosen = None, True
            self._trial_estimators, self._fit_report = fit.estimators, fit.report
        refit_members(fit, rows)
        training.n_passes = max(int(one.estimator.n_iter_) for one in training.members)
        self._fit_report = fit.report
        self._forget("_trial_estimators")
        _ = training.folded  # made here, so that the first prediction is as fast as all others

    def _read_with(self, statistics: TargetStatistics | None) -> int:
        """Have rows of tables read with these target statistics, or without any."""
        self.layout_.statistics = statistics
        return width_of(self)

    def _forget(self, *names: str) -> None:
        state: Any = vars(self)
        for name in names:
            state.pop(name, None)

    # ---- what files ask ----------------------------------------------------------------------

    def member_of(self, settings: dict[str, Any]) -> SoftPlanesClassifier:
        """Return a member with given settings, not trained.

        Parameters
        ----------
        settings : dict
            Parameters of `SoftPlanesClassifier`.

        Returns
        -------
        SoftPlanesClassifier
            The member.
        """
        return SoftPlanesClassifier(**settings)

    # ---- what is checked ---------------------------------------------------------------------

    def _check_two_classes(self, data: TrainingData, labels: Array) -> None:
        self._check_classes(labels)
        members = weighty(in_place(data.labels.size), data.weights)
        if np.unique(data.labels[members]).size < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; those with a weight "
                "above 0 are all of one class."
            )

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any, eval_set: Any, known: Array | None
    ) -> tuple[GivenRows, Array]:
        """Return the rows of a fit as they are given, and all labels."""
        data, labels = read_training(self, X, y, None, sample_weight, known, 1.0)
        keyed = take_keys(self)
        judged_by = self._read_eval_set(eval_set, labels)
        eval_keys = take_keys(self)
        layout = layout_of(self)
        if layout is not None:
            layout.keeps_keys = False
        given = GivenRows(mean_weight_is_one(data), judged_by, keyed, eval_keys, width_of(self))
        return given, labels

    def _read_eval_set(self, eval_set: Any, labels: Array) -> TrainingData | None:
        """Return the rows by which recipes are judged, if they are given."""
        if eval_set is None:
            return None
        pairs = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
        if len(pairs) != 1 or len(pairs[0]) != 2:
            raise ValueError("eval_set must be a pair (X, y), or a list with one pair.")
        rows, y = read_matrix_and_labels(self, pairs[0][0], pairs[0][1], False, 1.0)
        known, codes = codes_of(y, labels)
        if known.size > labels.size:
            raise ValueError(
                f"eval_set holds labels that y does not: {known[labels.size :].tolist()}."
            )
        return TrainingData(rows, codes, np.empty(0, np.float32))

    # ---- prediction --------------------------------------------------------------------------

    def _reached(self) -> PlaneRecord:
        training: BlendedTraining = self._training
        return training.folded.record

    def complete_stream(self) -> None:
        """Do nothing at the end of a stream: members have no last step."""

    # ---- what a fit knows --------------------------------------------------------------------

    @classmethod
    def recipe_table(cls) -> Any:
        """Return the table of recipes.

        Returns
        -------
        DataFrame or list of dict
            A row for each recipe: name, data, quality, settings, and why; a list without pandas.
        """
        return as_table(
            [
                {
                    "recipe": recipe.name,
                    "data": recipe.data,
                    "quality": recipe.quality,
                    **settings_of(recipe.settings),
                    "why": recipe.why,
                }
                for recipe in RECIPES
            ]
        )

    @property
    def trials_(self) -> Any:
        """Trials of recipes: a DataFrame if pandas is installed, else a list of dicts."""
        check_is_fitted(self)
        return as_table(vars(self).get("_fit_report", {}).get("trials", []))

    @property
    def expected_(self) -> Expected | None:
        """Error, log-loss and AUC to expect on new rows; None where no recipe was judged."""
        check_is_fitted(self)
        found = vars(self).get("_fit_report", {}).get("expected")
        return None if found is None else Expected.from_dict(found)

    @property
    def recipes_(self) -> dict[str, dict[str, Any]]:
        """Settings and weight of each recipe of the blend, as `recipes` takes them."""
        check_is_fitted(self)
        return {
            member.name: {
                name: getattr(member.estimator, name, member.statistics) for name in settings_of({})
            }
            | {"weight": member.weight}
            for member in self._training.members
        }


def with_member(classifier: PolyplaneClassifier, name: str, estimator: Any, X: Any) -> Any:
    """Put an estimator in the place of a member, as sure of the rows X as this one was."""
    training: BlendedTraining = training_of(classifier)
    member = next(one for one in training.members if one.name == name)
    rows = read_matrix(classifier, X, False, training.constant)
    none = np.empty(0, np.int32)
    data = TrainingData(rows, none, none.astype(np.float32))
    now, before = (scores_of_member(one, data) for one in (estimator, member.estimator))
    member.weight *= matching_factor(now, before)
    member.estimator = estimator
    return classifier


def check_recipes(given: Any) -> None:
    """Refuse settings of recipes that the algorithm does not have or cannot be blended with."""
    for name, recipe in given.items() if isinstance(given, Mapping) else ():
        settings = {key: one for key, one in recipe.items() if key != "weight"}
        unknown = settings.keys() - settings_of({}).keys()
        if unknown:
            raise ValueError(
                f"recipes: {name!r} has a setting {min(unknown)!r}; settings are "
                f"{', '.join(settings_of({}))}."
            )
        if settings.get("multi_class") == "ovo":
            raise ValueError(
                f"recipes: {name!r} has multi_class='ovo', which cannot be blended: pairs of "
                "classes have no scores that add up. Set 'joint' or 'ovr'."
            )
        try:
            if settings.get("statistics", "none") not in STATISTICS:
                raise ValueError(f"statistics must be one of {', '.join(STATISTICS)}.")
            own = {key: one for key, one in settings.items() if key not in OF_THE_VIEW}
            check_parameters(SoftPlanesClassifier(**own))
        except ValueError as error:
            raise ValueError(f"recipes: {name!r}: {error}") from None


def as_table(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a DataFrame if pandas is installed, else as they are."""
    if importlib.util.find_spec("pandas") is None:
        return rows
    return importlib.import_module("pandas").DataFrame(rows)
