"""Damaged files of every binary format are refused, and raise nothing but data errors."""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import DataError
from polyplane.data.reading import read
from tests.data.formats.arrow.test_parquet import MIXED, write_arrow_file, write_arrow_stream
from tests.data.formats.numpy.test_idx import IMAGES, idx

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 2, 1])
LISTS = {"indices": [[0], [2, 3], [], [1]], "values": [[1.0], [2, 3], [], [4]]}
SAVED = {  # the format that is stated, the mark at its beginning, and what saves a file
    "npy": ("npy", b"\x93NUMPY\x01\0", lambda path: np.save(path, X)),
    "npz": ("npz", b"PK\x03\x04", lambda path: np.savez(path, X=X, y=Y)),
    "packed npz": ("npz", b"PK\x03\x04", lambda path: np.savez_compressed(path, X=X, y=Y)),
    "sparse npz": ("npz", b"\x80\x04", lambda path: sp.save_npz(path, sp.csr_matrix(X))),
    "idx": ("idx", b"\0\0\x08\x01", lambda path: path.write_bytes(idx(IMAGES))),
    "parquet": ("parquet", b"PAR1", lambda path: pq.write_table(pa.table(MIXED), path)),
    "parquet of lists": ("parquet", b"", lambda path: pq.write_table(pa.table(LISTS), path)),
    "arrow": ("arrow", b"ARROW1\0\0", lambda path: write_arrow_file(path, pa.table(MIXED))),
    "arrow stream": ("arrow", b"\xff" * 4, lambda path: write_arrow_stream(path, pa.table(MIXED))),
}
in_every_form = pytest.mark.parametrize("form", SAVED)
with_one_folder = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def saved(folder, form):
    """Save a file; return its path and format."""
    kind, _, save = SAVED[form]
    path = folder / f"a.{kind}"
    save(path)
    return path, kind


@in_every_form
def test_a_file_cut_anywhere_is_refused(tmp_path, form):
    path, kind = saved(tmp_path, form)
    whole = path.read_bytes()
    for end in [*range(0, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:end])
        if form == "arrow stream":  # of which batches may be missing
            with contextlib.suppress(DataError):
                read(path, format=kind)
        else:
            with pytest.raises(DataError):
                read(path, format=kind)


@in_every_form
@with_one_folder
@given(st.data())
def test_changed_bytes_raise_nothing_but_data_errors(tmp_path, form, data):
    path, kind = saved(tmp_path, form)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        read(path, format=kind)


@in_every_form
@with_one_folder
@given(content=st.binary(max_size=200), is_marked=st.booleans())
def test_random_bytes_raise_nothing_but_data_errors(tmp_path, form, content, is_marked):
    kind, mark, _ = SAVED[form]
    path = tmp_path / f"random.{kind}"
    path.write_bytes(mark + content + mark if is_marked else content)
    with contextlib.suppress(DataError):
        read(path, format=kind)
