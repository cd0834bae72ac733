"""Text from outside as a terminal may show it: nothing in it moves the cursor or turns lines round.

Labels, names of columns and of files come from anywhere. Whatever the command line says passes
through here on its way to the screen; files and pipes get the text as it is.
"""

import logging
import re

__all__ = ["PrintableRemarks", "printable"]

CONTROLS = "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: cursor, colours, titles, clipboard
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi: letters in another order
BREAKS = "\u2028\u2029"
NOT_ENCODABLE = "\ud800-\udfff"  # bytes of a file name that are no UTF-8
UNSAFE = re.compile(f"[{CONTROLS}{DIRECTIONS}{BREAKS}{NOT_ENCODABLE}]")


def printable(text: str) -> str:
    """Return a text on one line, unsafe characters as Python writes them: \\x1b, \\u202e."""
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PrintableRemarks(logging.Formatter):
    """Remarks of the package as lines on standard error."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return printable(super().format(record))
