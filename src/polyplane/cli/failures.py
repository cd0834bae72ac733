"""Failures as a user meets them: one sentence on standard error and an exit code."""

import contextlib
import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from polyplane.cli.output.printable import printable

__all__ = [
    "BAD_CALL",
    "BAD_INPUT",
    "DONE",
    "INTERRUPTED",
    "NO_READER",
    "CallError",
    "exit_code_of",
    "interrupted_code",
    "tell",
]

DONE, BAD_INPUT, BAD_CALL = 0, 1, 2
BY_SIGNAL = 128  # plus the number of the signal, as a shell says of a program that one has ended
INTERRUPTED, NO_READER = BY_SIGNAL + signal.SIGINT, 141
HINTS = {
    errno.ENOSPC: "make room, or name another place",
    errno.EACCES: "check the permissions of the file and its folder",
    errno.EROFS: "name a place that can be written to",
    errno.ENOENT: "check the name",
}


SPOKEN_OF = {"missing": "--missing", "on_bad": "--on-bad", "categories": "--categories"}


class CallError(Exception):
    """Error for a call that makes no sense, whatever the data are: one sentence with the fix."""


def exit_code_of(work: Callable[[], Any], is_debug: bool) -> int:
    """Do some work; return its exit code, if it has one, or say what went wrong."""
    try:
        code = work()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        if is_debug and not isinstance(error, BrokenPipeError | SystemExit):
            traceback.print_exception(error)
        return _code_and_words(error)


def _code_and_words(error: BaseException) -> int:
    if isinstance(error, BrokenPipeError):
        _close_quietly()
        return NO_READER
    if isinstance(error, KeyboardInterrupt):
        tell("Stopped. Nothing was left half-written.")
        return interrupted_code(error)
    if isinstance(error, CallError):
        tell(str(error))
        return BAD_CALL
    if isinstance(error, OSError):
        tell(_words_of(error))
        return BAD_INPUT
    if isinstance(error, MemoryError):
        tell("There is not enough memory: stream the rows (--stream), or take fewer of them.")
        return BAD_INPUT
    if isinstance(error, ValueError):
        tell(in_options(str(error)))
        return BAD_INPUT
    if isinstance(error, SystemExit):
        return int(error.code or 0) if not isinstance(error.code, str) else BAD_INPUT
    tell(
        f"An error in polyplane itself, {type(error).__name__}: {error}. "
        "Run it again with --debug for the details, and please report them."
    )
    return BAD_INPUT


def interrupted_code(error: KeyboardInterrupt) -> int:
    """Return the exit code after an interrupt: that of the signal, if the error names one."""
    return BY_SIGNAL + error.args[0] if error.args else INTERRUPTED


def in_options(sentence: str) -> str:
    """A sentence of the readers in words of the command line: missing='zero' is --missing zero."""
    names = "|".join(SPOKEN_OF)
    return re.sub(rf"\b({names})='(\w+)'", lambda m: f"{SPOKEN_OF[m[1]]} {m[2]}", sentence)


def _words_of(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename else ""
    hint = HINTS.get(error.errno or 0)
    return f"{name}{error.strerror or error}{f': {hint}' if hint else ''}."


def tell(sentence: str) -> None:
    """Say what went wrong; standard error may be gone too."""
    with contextlib.suppress(OSError, ValueError):
        end = "" if sentence.endswith((".", "?", "`")) else "."
        print(f"polyplane: {printable(sentence)}{end}", file=sys.stderr, flush=True)


def _close_quietly() -> None:
    """The reader of standard output has gone: what is still in the buffer goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # no real file
        pass
    finally:
        os.close(nowhere)
