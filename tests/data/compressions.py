"""Archives of bytes, by the programs that unpack them."""

import bz2
import gzip
import lzma

import pyarrow as pa

__all__ = ["BY_SUFFIX", "COMPRESSIONS"]

COMPRESSIONS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda text: pa.compress(text, "zstd", asbytes=True),
}
BY_SUFFIX = dict(zip((".gz", ".bz2", ".xz", ".zst"), COMPRESSIONS.values(), strict=True))
