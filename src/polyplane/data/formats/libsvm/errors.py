"""Error messages for words of LIBSVM text."""

import re
from collections.abc import Iterator

from polyplane.data.formats.libsvm.lines import LARGEST_INDEX

__all__ = [
    "entries_of",
    "entry_problem",
    "label_problem",
    "number_pattern",
    "repeated_problem",
    "shown",
    "value_problem",
    "width_problem",
    "word_at",
]

LONGEST_SHOWN = 40
number_pattern = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_not_finite = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_hexadecimal = re.compile(rb"[+-]?0x[0-9a-f.p+-]*", re.IGNORECASE)
_word = re.compile(rb"[^ \t\r\n#]+")
_entry = re.compile(rb"(?<![^ \t\r])(\d+):")


def shown(text: bytes) -> str:
    """The text in quotes, shortened, its odd bytes as escapes."""
    cut = text[:LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    word = cut if cut.isprintable() else ascii(cut)[1:-1]
    return f"'{word}{'...' if len(text) > LONGEST_SHOWN else ''}'"


def word_at(text: bytes | bytearray, position: int) -> bytes:
    """The word that starts at the position."""
    found = _word.match(text, position)
    return bytes(found[0]) if found else b""


def entries_of(line: bytes) -> Iterator[tuple[int, int]]:
    """Where the entries of a line stand, and their indices; the line has been read once."""
    for found in _entry.finditer(line.partition(b"#")[0]):
        yield found.start(1), int(found[1].lstrip(b"0") or b"0")


def label_problem(word: bytes) -> str | None:
    """Why the word cannot be a label of any kind; None if it can."""
    if b":" in word:
        return f"found {shown(word)} where the label of the row was expected: is it missing?"
    if b"," in word:
        return f"found several labels, {shown(word)}; one label a row was expected"
    if _not_finite.fullmatch(word):
        return f"the label {shown(word)} is not finite; a finite number was expected"
    try:
        is_text = word.decode().isprintable()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        return f"found {shown(word)}; a label in UTF-8 was expected: is this LIBSVM text?"
    return None


def _index_problem(index: bytes) -> str | None:
    if index.isdigit():
        if int(index[-20:]) > LARGEST_INDEX or len(index.lstrip(b"0")) > 10:
            return f"the index {shown(index)} is above {LARGEST_INDEX:,}, the largest there may be"
        return None
    if index[:1] == b"-" and index[1:].isdigit():
        return f"the index {shown(index)} is negative; a whole number was expected"
    if index == b"qid":
        return "found 'qid' where an index was expected: `qid:n` stands once, after the label"
    return f"found {shown(index)} where an index, a whole number, was expected"


def value_problem(value: bytes) -> str:
    """Why the text after a colon is not a value."""
    if not value:
        return "found no value after the colon; a number was expected"
    if _not_finite.fullmatch(value):
        return f"the value {shown(value)} is not finite; a finite number was expected"
    if _hexadecimal.fullmatch(value):
        return f"the value {shown(value)} is hexadecimal; a decimal number was expected"
    if number_pattern.fullmatch(value):
        return f"the value {shown(value)} is too large for float32, which ends at 3.4e38"
    if b"\0" in value:
        return f"found {shown(value)} with a NUL byte; a number was expected: is the text UTF-16?"
    return f"found {shown(value)}; a number was expected"


def entry_problem(word: bytes) -> tuple[int, str]:
    """Return the position of the byte that is wrong in a word, and why it is wrong."""
    index, colon, value = word.partition(b":")
    if not colon:
        hint = (
            "; for a table whose columns are parted by blanks, state format='csv' and "
            "delimiter=' ' (--format csv --delimiter ' ')"
        )
        is_number = number_pattern.fullmatch(word) is not None
        return 0, f"found {shown(word)}; index:value was expected{hint * is_number}"
    problem = _index_problem(index)
    return (0, problem) if problem else (len(index) + 1, value_problem(value))


def repeated_problem(index: int) -> str:
    """Return the sentence about an index that stands twice."""
    return f"the index {index} stands twice in this row; once was expected"


def width_problem(index: int, base: int, n_features: int) -> str:
    """An index beyond the stated number of features."""
    return (
        f"the index {index} is too large: with n_features={n_features} and indices from {base} on, "
        f"the largest is {n_features - 1 + base}"
    )
