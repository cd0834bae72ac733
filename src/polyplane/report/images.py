"""Rows and planes as small pictures inside a page: PNG files as addresses that hold all of them."""

import base64
import math
import struct
import zlib

import numpy as np

from polyplane.arrays import Array

__all__ = ["guessed_shape", "picture_of_row", "picture_of_weights", "png"]

MIN_PICTURE_PIXELS = 64  # pixels of a picture
MIN_PIXEL_CORRELATION = 0.3  # correlation of pixels side by side
WARM, COLD = (178, 70, 20), (20, 90, 160)  # for a class, and against it


def guessed_shape(X: Array) -> tuple[int, int] | None:
    """Height and width, if rows look like square pictures: no signs, and neighbours alike."""
    n_columns = X.shape[1]
    side = math.isqrt(n_columns)
    if side * side != n_columns or n_columns < MIN_PICTURE_PIXELS or len(X) < 2 or X.min() < 0:
        return None
    rows = np.asarray(X[:500], np.float64).reshape(-1, side, side)
    left, right = rows[:, :, :-1].ravel(), rows[:, :, 1:].ravel()
    if left.std() == 0 or right.std() == 0:
        return None
    return (side, side) if np.corrcoef(left, right)[0, 1] > MIN_PIXEL_CORRELATION else None


def picture_of_row(row: Array, shape: tuple[int, int]) -> str:
    """Dark ink on white."""
    share = np.clip(row.reshape(shape) / max(float(row.max()), 1e-30), 0, 1)
    return png(np.repeat((255 * (1 - share))[..., None], 3, axis=2))


def picture_of_weights(weights: Array, shape: tuple[int, int]) -> str:
    """Return a picture of weights: warm for the class, cold against it, white without effect."""
    share = weights.reshape(shape) / max(float(np.abs(weights).max()), 1e-30)
    towards = np.where((share > 0)[..., None], np.array(WARM), np.array(COLD))
    strength = np.sqrt(np.abs(share))[..., None]
    return png(255 * (1 - strength) + towards * strength)


def png(pixels: Array) -> str:
    """An address with the picture in it; pixels are lines by columns by red, green and blue."""
    height, width, _ = pixels.shape
    lines = np.clip(np.rint(pixels), 0, 255).astype(np.uint8).reshape(height, -1)
    data = b"".join(b"\0" + line.tobytes() for line in lines)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [_part(b"IHDR", head), _part(b"IDAT", zlib.compress(data, 9)), _part(b"IEND", b"")]
    whole = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return "data:image/png;base64," + base64.b64encode(whole).decode()


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
