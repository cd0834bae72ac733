"""The program `polyplane`: help without delay, everything else through click."""

import os
import sys
from collections.abc import Sequence

from polyplane.cli.failures import CallError, exit_code_of
from polyplane.cli.options.help_text import help_of, overview
from polyplane.cli.options.verb_list import VERBS, verb_called

__all__ = ["main"]

COMPLETION = "_POLYPLANE_COMPLETE"  # set by a shell that asks what could come next


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    closed = _closed_streams(words)
    if closed is not None:
        return exit_code_of(lambda: _refuse(closed), is_debug=False)
    _accept_any_text()
    text = None if COMPLETION in os.environ else _help_asked(words)
    if text is not None:
        return exit_code_of(lambda: print(text), is_debug=False)
    return exit_code_of(lambda: _run(words), is_debug="--debug" in words)


def _run(words: list[str]) -> int:
    from polyplane.cli.app import run  # noqa: PLC0415  click alone takes longer than help may

    return run(words)


def _help_asked(words: list[str]) -> str | None:
    """The help that the words ask for, if they do."""
    if words and words[0] in VERBS:
        options = words[: words.index("--")] if "--" in words else words
        return help_of(verb_called(words[0], words)) if "--help" in options else None
    if words in ([], ["--help"]):
        return overview([verb_called(name) for name in VERBS])
    return None


def _closed_streams(words: list[str]) -> str | None:
    """What is needed and was closed by who called us (`>&-`): Python then has None in its place."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the life of the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return "Standard output is closed: send it to a file, or to /dev/null."
    if sys.stdin is None and "-" in words:
        return "Standard input is closed, but - asks for rows from it: name a file, or use a pipe."
    return None


def _refuse(sentence: str) -> None:
    raise CallError(sentence)


def _accept_any_text() -> None:
    """A terminal that knows only ASCII gets question marks, not an error."""
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
        if not encoding.startswith("utf") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
