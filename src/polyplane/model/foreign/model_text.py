"""Models of other programs that are text: lines of a key and its values, then rows.

LIBSVM and LIBLINEAR write such files. Here is what both have in common: which program wrote a
file, its keys, and rows taken apart; `libsvm_model.py` and `liblinear_model.py` say what keys and
rows mean. Nothing is believed: whatever is missing, left over, out of range or not finite is a
`ModelError` that names the file and the line. Memory follows the size of the file, never a number
that it states.
"""

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from polyplane.arrays import Array
from polyplane.model.format.model_file import ModelError

__all__ = [
    "MOST_COEF0", "MOST_DEGREE", "SparseText", "TextModel", "is_text_model", "number_rows",
    "read_text_model",
]  # fmt: skip

MARKS = {  # by the first word of a file: the program, and the line after which rows begin
    b"svm_type": ("LIBSVM", b"SV"),
    b"solver_type": ("LIBLINEAR", b"w"),
}
KEYS = {
    "LIBSVM": {
        "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho",
        "label", "probA", "probB", "prob_density_marks", "nr_sv",
    },
    "LIBLINEAR": {"solver_type", "nr_class", "label", "nr_feature", "bias", "rho"},
}  # fmt: skip
LARGEST_WHOLE = 2**31 - 1  # of the programs' own numbers
LONGEST_WHOLE = 11  # characters
LONGEST_SHOWN = 40
MOST_DEGREE = 100  # of a kernel: more has no value in float32, and each costs a product
MOST_COEF0 = 1e10
BLANKS = bytes.maketrans(b"\t\r", b"  ")
_whole = re.compile(rb"[+-]?[0-9]+")


@dataclass(frozen=True)
class SparseText:
    """Rows `index:value ...` that are still text, indices from 1 on."""

    rows: Sequence[bytes]
    first_line: int  # of the file: the line of rows[0]
    path: Any


@dataclass
class TextModel:
    """A file, taken apart as far as all programs agree."""

    path: Any
    program: str
    keys: dict[str, tuple[int, list[bytes]]]  # line and words
    body: bytes  # the rows, each with its newline
    first_line: int  # of the body

    def refuse(self, problem: str, line: int | None = None) -> NoReturn:
        """Raise the error that names the file and, where there is one, the line."""
        raise ModelError(problem if line is None else f"line {line}: {problem}", self.path)

    def words(self, key: str, n: int | None = None) -> list[bytes]:
        """The words after a key, n of them."""
        if key not in self.keys:
            self.refuse(f"has no line `{key}`, which models of {self.program} have: is it whole?")
        line, words = self.keys[key]
        if n is not None and len(words) != n:
            self.refuse(f"{key} has {len(words):,} values, expected {n:,}", line)
        return words

    def word(self, key: str) -> str:
        """The one word after a key."""
        return self.words(key, 1)[0].decode("ascii", "backslashreplace")

    def classifier(self, key: str, read: Sequence[str], refused: Mapping[str, str]) -> str:
        """The word after a key that says what kind of model it is, of those that are read."""
        word, (line, _) = self.word(key), self.keys[key]
        if word in refused:
            self.refuse(f"is {refused[word]} ({word}); only classifiers are read", line)
        if word not in read:
            self.refuse(f"{key} is {shown(word.encode())}, expected one of {', '.join(read)}", line)
        return word

    def wholes(self, key: str, n: int, low: int, high: int = LARGEST_WHOLE) -> list[int]:
        """The n whole numbers after a key."""
        words = self.words(key, n)
        for word in words:
            is_whole = len(word) <= LONGEST_WHOLE and _whole.fullmatch(word) is not None
            if not is_whole or not low <= int(word) <= high:
                problem = f"{key} is {shown(word)}, expected a whole number from {low} to {high:,}"
                self.refuse(problem, self.keys[key][0])
        return [int(word) for word in words]

    def whole(self, key: str, low: int, high: int = LARGEST_WHOLE) -> int:
        """The whole number after a key."""
        return self.wholes(key, 1, low, high)[0]

    def numbers(self, key: str, n: int) -> Array:
        """The n finite numbers after a key."""
        words = self.words(key, n)
        return number_rows([b" ".join(words)], n, self.keys[key][0], self.path).ravel()

    def number(self, key: str, low: float = -np.inf, high: float = np.inf) -> float:
        """The finite number after a key, above `low` and up to `high`."""
        found = float(self.numbers(key, 1)[0])
        if not low < found <= high:
            limits = f"above {low:g}" + ("" if high == np.inf else f" and up to {high:g}")
            self.refuse(f"{key} is {found:g}, expected a number {limits}", self.keys[key][0])
        return found

    def labels(self, key: str, n: int) -> Array:
        """The labels of n classes, no two of them equal."""
        labels = np.array(self.wholes(key, n, -LARGEST_WHOLE - 1), np.int64)
        if np.unique(labels).size < n:
            self.refuse(f"{key} names a class twice", self.keys[key][0])
        return labels

    def check_rows(self, n: int, key: str) -> None:
        """The body has as many lines as the key states."""
        found = self.body.count(b"\n")
        if found != n:
            where = self.first_line + min(n, found)
            self.refuse(f"found {found:,} rows, expected {n:,} as {key} says: is it whole?", where)

    def halves(self, n: int, key: str) -> tuple[list[bytes], SparseText]:
        """The numbers that begin each row, as many rows as the key states, and its features."""
        self.check_rows(n, key)
        heads, tails = [], []
        for row in self.body.translate(BLANKS).split(b"\n")[:n]:
            colon = row.find(b":")
            cut = len(row) if colon < 0 else row.rfind(b" ", 0, colon) + 1
            heads.append(row[:cut])
            tails.append(row[cut:])
        return heads, SparseText(tails, self.first_line, self.path)


def shown(word: bytes) -> str:
    """The word in quotes, shortened, its odd bytes as escapes."""
    cut = word[:LONGEST_SHOWN].decode("ascii", "backslashreplace")
    return f"'{cut}{'...' if len(word) > LONGEST_SHOWN else ''}'"


def is_text_model(path: Any) -> bool:
    """Return True if the first line of a file is that of a text model, sound or not."""
    try:
        with open(path, "rb") as file:
            return _first_word(file.read(64)) in MARKS
    except (OSError, ValueError):
        return False


def _first_word(start: bytes) -> bytes:
    return (start.partition(b"\n")[0].split() or [b""])[0]


def read_text_model(path: Any) -> TextModel:
    """The keys and the rows of a file."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot be read ({why})", path) from error
    first = _first_word(text[:64])
    if first not in MARKS:
        raise ModelError("is no text model: LIBSVM and LIBLINEAR write such", os.fspath(path))
    if not text.endswith(b"\n"):
        raise ModelError("is cut short, for its last line has no end: get or train it again", path)
    return _parted(path, text, *MARKS[first])


def _parted(path: Any, text: bytes, program: str, mark: bytes) -> TextModel:
    """Keys up to the mark, and the rest."""
    model = TextModel(path, program, {}, b"", 1)
    start = 0
    while start < len(text):
        end = text.index(b"\n", start)
        words = text[start:end].split()
        start = end + 1
        if words == [mark]:
            model.body, model.first_line = text[start:], model.first_line + 1
            return model
        key = words[0].decode("ascii", "backslashreplace") if words else ""
        if key not in KEYS[program]:
            known = f"a key of {program}'s models or `{mark.decode()}` was expected"
            model.refuse(f"found {shown(words[0] if words else b'')}; {known}", model.first_line)
        if key in model.keys:
            model.refuse(f"{key} stands there a second time", model.first_line)
        model.keys[key] = model.first_line, words[1:]
        model.first_line += 1
    model.refuse(f"has no line `{mark.decode()}`, after which rows begin: is it whole?")


# ---- rows of numbers ---------------------------------------------------------------------


def number_rows(rows: Sequence[bytes] | bytes, n_columns: int, line: int, path: Any) -> Array:
    """Lines of so many finite numbers each, the first of which is `line` of the file."""
    text = rows if isinstance(rows, bytes) else b"\n".join(rows) + b"\n"
    n_rows = text.count(b"\n")
    try:
        if text.isspace():
            raise ValueError
        found = np.loadtxt(io.BytesIO(text), ndmin=2, comments=None, encoding="ascii")
        is_table = found.shape == (n_rows, n_columns) and bool(np.isfinite(found).all())
    except ValueError:
        is_table = False
    if not is_table:
        _refuse_numbers(text, n_columns, line, path)
    return found


def _refuse_numbers(text: bytes, n_columns: int, first_line: int, path: Any) -> NoReturn:
    """Find the line that is wrong, and say why."""
    for line, row in enumerate(text.split(b"\n"), first_line):
        words = row.split()
        for word in words:
            problem = _number_problem(word)
            if problem is not None:
                raise ModelError(f"line {line}: {problem}", path)
        if len(words) != n_columns:
            problem = f"found {len(words):,} numbers, expected {n_columns:,}"
            raise ModelError(f"line {line}: {problem}", path)
    raise ModelError(f"line {first_line}: found no numbers that can be read", path)


def _number_problem(word: bytes) -> str | None:
    try:
        number = float(word) if b"_" not in word else None
    except ValueError:
        number = None
    if number is None:
        return f"found {shown(word)}, expected a number"
    return None if np.isfinite(number) else f"found {shown(word)}, expected a finite number"
