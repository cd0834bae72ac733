"""Names of Dask that the backend uses, or an error that says how to install it."""

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed, delayed
    from dask.sizeof import sizeof
    from distributed import (
        CancelledError,
        Client,
        Future,
        KilledWorker,
        as_completed,
        default_client,
        wait,
    )
    from distributed.comm import CommClosedError
except ImportError as error:
    raise ImportError(
        "Training on a cluster needs Dask: install it with pip install 'polyplane[dask]'."
    ) from error

__all__ = [
    "CancelledError", "Client", "CommClosedError", "Delayed", "Future", "KilledWorker",
    "as_completed", "da", "dask", "default_client", "delayed", "sizeof", "wait",
]  # fmt: skip
