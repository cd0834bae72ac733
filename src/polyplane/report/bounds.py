"""What the theorems of the AMM paper promise for a model: diagnostics, not goals.

Both are loose. Theorem 2 assumes that the training rows are separated without error and that
|x| <= 1, and its constant of 130 and the product of norm, planes and logarithms put it above 1,
where it says nothing, on nearly every real data set. Theorem 3 bounds an average gap by terms in
1/lambda, far above the gaps one sees. Use them to compare models of one data set, as the paper
does to argue for few planes and for pruning with a small budget.
Paper: Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420
"""

from collections.abc import Sequence
from math import e, log

__all__ = ["generalization_bound", "pruning_gap"]


def generalization_bound(
    n_rows: int, squared_norm: float, planes_per_class: Sequence[int], delta: float = 0.05
) -> float:
    """Thm 2: error of a model that separates its n_rows, with probability 1 - delta.

    `squared_norm` is that of all planes together; `planes_per_class` counts non-zero planes, to
    each of which the paper adds the reserved zero plane of the class. Above 1 it says nothing.
    """
    if n_rows < 1 or squared_norm < 0 or not 0 < delta < 1 or len(planes_per_class) < 2:
        raise ValueError(
            "generalization_bound needs n_rows >= 1, squared_norm >= 0, delta between 0 and 1 "
            f"and two classes or more; got {n_rows}, {squared_norm}, {delta}, {planes_per_class}."
        )
    b = [n + 1 for n in planes_per_class]
    B = sum(b) + 1 + max(b) ** 2 - max(b) - min(b)
    K = sum(own * (sum(b) - own) for own in b) / 2
    margin_term = squared_norm * B * log(4 * e * n_rows) * log(4 * n_rows)
    return 130 / n_rows * (margin_term + log(2 / delta) + K * log(2 * n_rows))


def pruning_gap(
    n_steps: int, alpha: float, prune_interval: int = 10_000, prune_budget: float = 10.0
) -> float:
    """Thm 3: how far the mean loss over n_steps may lie above the optimum's; budget 0 is Thm 1."""
    if n_steps < 1 or alpha <= 0 or prune_interval < 1 or prune_budget < 0:
        raise ValueError(
            "pruning_gap needs n_steps >= 1, alpha > 0, prune_interval >= 1 and "
            f"prune_budget >= 0; got {n_steps}, {alpha}, {prune_interval}, {prune_budget}."
        )
    c = prune_budget
    return (8 + c) * (log(n_steps) + 1) / (alpha * n_steps) + 2 * (4 + c) * c / (
        prune_interval * alpha
    )
