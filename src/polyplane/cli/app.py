"""The verbs as commands of click: parsing, suggestions and shell completion."""

import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from polyplane import __version__
from polyplane.cli.failures import BAD_CALL, CallError, exit_code_of, tell
from polyplane.cli.light_imports import imported_lightly
from polyplane.cli.options.declarations import Argument, Option, Verb
from polyplane.cli.options.help_text import help_of, overview
from polyplane.cli.options.shared_options import PARAMETERS, READING, SCREEN, reading_of
from polyplane.cli.options.verb_list import VERBS, verb_called
from polyplane.cli.output.screen import Screen

__all__ = ["run"]

NUMBERS = {int: "a whole number", float: "a number"}
SHELLS = ("bash", "zsh", "fish")
ANY_SHELL = "the one in use"


class _Command(click.Command):
    """A command with our own help."""

    def __init__(self, verb: Verb):
        parameters = [*map(_argument, verb.arguments), *map(_option, verb.options)]
        super().__init__(verb.name, params=parameters, callback=_function_of(verb))
        self.verb = verb

    def get_help(self, ctx: click.Context) -> str:
        return help_of(self.verb)


class _Program(click.Group):
    """The program with our own help."""

    def __init__(self, verbs: Sequence[Verb]):
        options = [
            click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False,
                         callback=_show_version),
            click.Option(["--show-completion"], is_flag=False, flag_value=ANY_SHELL, is_eager=True,
                         expose_value=False, callback=_show_completion),
        ]  # fmt: skip
        super().__init__("polyplane", {verb.name: _Command(verb) for verb in verbs}, params=options)

    def get_help(self, ctx: click.Context) -> str:
        verbs = [one.verb for one in self.commands.values() if isinstance(one, _Command)]
        return overview(verbs)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """With a suggestion where there is no such command, which older click does not make."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1].isalnum():
            close = get_close_matches(name, self.commands, 1)
            said = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {name!r}.{said}")
        return super().resolve_command(ctx, args)


def run(words: Sequence[str]) -> int:
    """Do what a command line says; return the exit code."""
    called = [name for name in words[:1] if name in VERBS]  # making them all takes 0.1 seconds
    program = _Program([verb_called(name, words) for name in called or VERBS])
    try:
        code = program.main(args=list(words), prog_name="polyplane", standalone_mode=False)
    except click.UsageError as error:
        path = f"polyplane {words[0]}" if words[0] in VERBS else "polyplane"
        message = error.format_message()
        tell(f"{message}{'' if message.endswith(('.', '?', '?)')) else '.'} See `{path} --help`.")
        return BAD_CALL
    return int(code or 0)


def _show_version(context: click.Context, option: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        print(f"polyplane {__version__}")
        context.exit()


def _show_completion(context: click.Context, option: click.Parameter, shell: str | None) -> None:
    """The lines that a shell's start-up file needs."""
    if shell is None:
        return
    name = PurePath(os.environ.get("SHELL", "")).name if shell == ANY_SHELL else shell
    if name not in SHELLS:
        raise click.UsageError(f"--show-completion needs a shell: {', '.join(SHELLS)}")
    completes = get_completion_class(name)
    if completes is not None:
        print(completes(context.command, {}, "polyplane", "_POLYPLANE_COMPLETE").source())
    context.exit()


def _function_of(verb: Verb) -> Callable[..., int]:
    def call(**values: Any) -> int:
        return _exit_code(verb, values)

    return call


def _argument(argument: Argument) -> click.Argument:
    return click.Argument(
        [argument.name], metavar=argument.shown, nargs=-1 if argument.is_many else 1, required=True
    )


def _option(option: Option) -> click.Option:
    *others, last = option.spellings
    names = [option.key, *others, f"{last}/{option.denial}" if option.denial else last]
    is_flag = option.kind is bool
    default = False if is_flag and not option.denial else option.default
    return click.Option(
        names, metavar=None if is_flag else option.shown or None, default=default,
        is_flag=is_flag, multiple=option.kind == list[str], type=None if is_flag else str,
        hidden=option.is_hidden, shell_complete=_completion_of(option),
    )  # fmt: skip


def _completion_of(option: Option) -> Callable[..., list[CompletionItem]] | None:
    """What a shell completes; without choices, click's own."""

    def completes(context: Any, parameter: Any, begun: str) -> list[CompletionItem]:
        return [CompletionItem(one) for one in option.choices if one.startswith(begun)]

    return completes if option.choices else None


# ---- what a verb is asked ----------------------------------------------------------------


def _exit_code(verb: Verb, values: dict[str, Any]) -> int:
    screen = Screen(**_given(verb, values, SCREEN))
    with screen.remarks():
        return exit_code_of(lambda: _work(verb, values, screen), screen.debug)


def _work(verb: Verb, values: dict[str, Any], screen: Screen) -> int | None:
    """Let the verb's module do it; a verb may have an exit code of its own."""
    asked = {argument.name: values[argument.name] for argument in verb.arguments}
    own = [option for option in verb.options if not option.group]
    asked |= {option.name: _value_of(option, values[option.name]) for option in own}
    groups = {option.group for option in verb.options}
    if READING in groups:
        asked["reading"] = reading_of(_given(verb, values, READING))
    if PARAMETERS in groups:
        asked["parameters"] = _given(verb, values, PARAMETERS)
    request = verb.request(**asked) if verb.request else None
    does: Callable[..., int | None]
    does = imported_lightly(verb.module, with_estimators=verb.trains).run
    return does(request, screen) if request is not None else does(screen, **asked)


def _value_of(option: Option, given: Any) -> Any:
    """Numbers of texts; click's own words for what is none are not ours."""
    if given is None or option.kind not in NUMBERS:
        return given
    try:
        return option.kind(given)
    except ValueError:
        expected = NUMBERS[option.kind]
        raise CallError(f"{option.spellings[0]} is {given!r}, expected {expected}.") from None


def _given(verb: Verb, values: dict[str, Any], group: str) -> dict[str, Any]:
    """The options of a group that stand on the command line."""
    found = {o.name: values[o.key] for o in verb.options if o.group == group}
    return {name: value for name, value in found.items() if value not in (None, [], ())}
