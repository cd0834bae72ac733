"""Names, labels and cells that would like to be more than text."""

import numpy as np
import pandas as pd

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "\"'><img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked = 1</script>",
    "مرحبا \u202e‮ שלום",
    "👩‍💻 emoji 🎈",
    "x" * 10_000,
    "${window.hacked=1} {{7*7}} &lt;b&gt;",
]


def hostile_table(n_rows=400):
    """A frame and labels, both with nothing else."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (n_rows, 4))
    frame = pd.DataFrame(X, columns=HOSTILE[:4])
    frame[HOSTILE[4]] = np.array(HOSTILE)[generator.integers(0, len(HOSTILE), n_rows)]
    y = np.array([HOSTILE[0], HOSTILE[5]])[(X[:, 0] * X[:, 1] > 0).astype(int)]
    y[:40] = HOSTILE[3]
    return frame, y
