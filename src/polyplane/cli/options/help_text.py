"""Help as text, made without click or rich: it is there at once, and reads well at any width."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

from polyplane.cli.options.declarations import Option, Verb

__all__ = ["help_of", "overview", "usage_of"]

WIDEST, NARROWEST = 100, 30
LEFT = 30  # columns for names of options; where that leaves too little, help stands below them
NARROW = 70
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def overview(verbs: Sequence[Verb], width: int | None = None) -> str:
    """What `polyplane --help` says."""
    width = width or _width()
    options = [
        ("--version", "Show the version."),
        ("--show-completion [SHELL]", "Show what lets bash, zsh or fish complete what is typed."),
        ("--help", "Show this."),
    ]
    intro = "Nonlinear classifiers at the price of linear ones: train, predict, look inside."
    parts = [
        "Usage: polyplane VERB [OPTIONS] ...\n",
        *textwrap.wrap(intro, width),
        *_panel("Verbs", [(verb.name, verb.summary) for verb in verbs], width),
        *_panel("Options", options, width),
        "",
        *textwrap.wrap("`polyplane VERB --help` says more, with an example each.", width),
    ]
    return "\n".join(parts)


def usage_of(verb: Verb) -> str:
    """The form of a call."""
    places = [f"{one.shown}{'...' if one.is_many else ''}" for one in verb.arguments]
    return " ".join(["polyplane", verb.name, *places, "[OPTIONS]"])


def help_of(verb: Verb, width: int | None = None) -> str:
    """What `polyplane VERB --help` says."""
    width = width or _width()
    lines = [f"Usage: {usage_of(verb)}\n", *textwrap.wrap(verb.summary, width)]
    if verb.details:
        lines += ["", *textwrap.wrap(verb.details, width)]
    lines += ["", _styled("Example", BOLD), f"  polyplane {verb.example}"]
    lines += _panel("Arguments", [(one.shown, one.help) for one in verb.arguments], width)
    for title, entries in verb.lists.items():
        lines += _panel(title, entries, width)
    for title, options in _by_panel(verb.options):
        entries = [(_names_of(option), option.help) for option in options]
        lines += _panel(title, entries, width)
    return "\n".join(lines)


def _by_panel(options: Iterable[Option]) -> Iterable[tuple[str, list[Option]]]:
    panels: dict[str, list[Option]] = {}
    for option in options:
        if not option.is_hidden:
            panels.setdefault(option.panel, []).append(option)
    return panels.items()


def _names_of(option: Option) -> str:
    names = ", ".join(reversed(option.spellings))
    return f"{names}{f' / {option.denial}' if option.denial else ''} {option.shown}".rstrip()


def _panel(title: str, entries: Sequence[tuple[str, str]], width: int) -> list[str]:
    """A heading, and names with what they mean."""
    if not entries:
        return []
    lines = ["", _styled(title, BOLD)]
    is_narrow = width < NARROW
    left = 6 if is_narrow else min(LEFT, max(len(name) for name, _ in entries) + 4)
    for name, meaning in entries:
        wrapped = textwrap.wrap(meaning, max(width - left, 20), break_on_hyphens=False)
        if is_narrow or len(name) + 4 > left:
            lines += _wrapped_name(name, width)
        else:
            wrapped[0] = f"  {name}".ljust(left) + wrapped[0]
            lines.append(wrapped.pop(0))
        lines += [" " * left + line for line in wrapped]
    return lines


def _wrapped_name(name: str, width: int) -> list[str]:
    """A name on lines of its own; choices are parted where they must be."""
    parts = textwrap.wrap(
        name.replace("|", "| "), width - 2, subsequent_indent="    ", break_on_hyphens=False
    )
    return [f"  {part.replace('| ', '|')}" for part in parts]


def _width() -> int:
    columns = shutil.get_terminal_size((80, 24)).columns
    return max(NARROWEST, min(columns, WIDEST))


def _styled(text: str, style: str) -> str:
    is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    is_styled = sys.stdout.isatty() and not is_plain
    return f"{style}{text}{PLAIN}" if is_styled else text
