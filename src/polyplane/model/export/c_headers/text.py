"""C as it is written: macros, tables of numbers and text, and code under the name of a model."""

import re
from string import Template
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.model.format.model_file import ModelError

__all__ = ["Header", "literal", "quoted"]

MOST_NUMBERS = 1 << 22  # of which compilers make something in a minute
WIDTH = 100
TYPES = {
    "f4": ("float", "f"), "f8": ("double", ""), "i4": ("int32_t", ""), "i8": ("int64_t", "LL"),
}  # fmt: skip
SAFE = re.compile(rb"[A-Za-z0-9 _.,:;+*/=<>()|~^&%$#@!'{}\[\]-]")  # without ?: trigraphs


class Header:
    """A header so far; in what is added, `name_` and `NAME_` stand for the model's name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[str] = []
        self.n_numbers = 0

    def code(self, text: str, **choices: str) -> None:
        """C, in which each `$word` is replaced by the choice of that name."""
        text = Template(text).substitute(choices)
        text = re.sub(r"\bNAME_", f"{self.name.upper()}_", text)
        self.parts.append(re.sub(r"\bname_", f"{self.name}_", text))

    def define(self, key: str, value: Any) -> None:
        """A macro, whole or a number of float32 or float64."""
        text = str(value) if isinstance(value, int) else literal(value)
        self.code(f"#define NAME_{key} {text}\n")

    def table(self, key: str, values: Array) -> None:
        """Numbers of float32, float64, int32 or int64, in one or two dimensions."""
        self.check_room(values.size)
        self.n_numbers += values.size
        kind, _ = TYPES[values.dtype.str[1:]]
        shape = "".join(f"[{size}]" for size in values.shape)
        self.code(f"\nstatic const {kind} NAME_{key}{shape} = ")
        rows = [values] if values.ndim == 1 else values
        texts = [f"{{\n{_wrapped(_literals(row))}}}" for row in rows]
        self.parts.append(texts[0] if values.ndim == 1 else "{\n" + ",\n".join(texts) + "\n}")
        self.parts.append(";\n")

    def texts(self, key: str, values: list[str]) -> None:
        """Pieces of text."""
        self.code(f"\nstatic const char *const NAME_{key}[{len(values)}] = ")
        self.parts.append(f"{{\n{_wrapped([quoted(value) for value in values])}}};\n")

    def check_room(self, n_more: int) -> None:
        """Refuse more numbers than a compiler can take, before memory is spent on them."""
        n_numbers = self.n_numbers + n_more
        if n_numbers > MOST_NUMBERS:
            raise ModelError(
                f"the model would be a header of {n_numbers} numbers, above the {MOST_NUMBERS} "
                "that compilers can take: export it to ONNX instead"
            )


def literal(number: Any) -> str:
    """A number of float32 or float64."""
    return _literals(np.asarray(number))[0]


def _literals(numbers: Array) -> list[str]:
    """With as many digits as tell the numbers of their type apart, so that none is rounded."""
    if not np.isfinite(numbers).all():
        raise ModelError(
            "the model holds numbers that are not finite, which C cannot write: scale the columns"
        )
    suffix = TYPES[numbers.dtype.str[1:]][1]
    return [text + suffix for text in numbers.ravel().astype(str).tolist()]


def quoted(text: str) -> str:
    """A string literal: bytes of UTF-8, all but harmless ones as octal numbers."""
    try:
        codes = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        codes = text.encode("utf-8", "surrogatepass")
    pieces = (bytes([code]) for code in codes)
    return (
        '"'
        + "".join(
            piece.decode() if SAFE.fullmatch(piece) else f"\\{piece[0]:03o}" for piece in pieces
        )
        + '"'
    )


def _wrapped(items: list[str]) -> str:
    """The items with commas, in lines."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "".join(f"{line}\n" for line in [*lines, line])
