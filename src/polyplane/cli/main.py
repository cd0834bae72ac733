"""The program `polyplane`: it answers with an exit code and one sentence, whatever goes wrong."""

import os
import sys
from collections.abc import Sequence

import click

from polyplane.cli.failures import BAD_CALL, CallError, exit_code_of, tell
from polyplane.cli.program import program

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    closed = _closed_stream(words)
    if closed is not None:
        return exit_code_of(lambda: _refuse(closed), is_debug=False)
    _accept_any_text()
    return exit_code_of(lambda: _run(words), is_debug="--debug" in words)


def _run(words: list[str]) -> int:
    try:
        code = program.main(args=words, prog_name="polyplane", standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "polyplane"
        message = error.format_message()
        tell(f"{message}{'' if message.endswith(('.', '?', '?)')) else '.'} See `{path} --help`.")
        return BAD_CALL
    return int(code or 0)


def _closed_stream(words: list[str]) -> str | None:
    """Return what is wrong if a stream that is needed was closed by the caller (`>&-`).

    Python then has None in its place.
    """
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
    """Let a terminal that takes only ASCII show question marks instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
        if not encoding.startswith("utf") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
