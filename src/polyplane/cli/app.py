"""The verbs as commands of typer: parsing, suggestions and shell completion."""

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from polyplane import __version__
from polyplane.cli.failures import BAD_CALL, CallError, exit_code_of, tell
from polyplane.cli.light_imports import import_scikit_learn
from polyplane.cli.options.declarations import Argument, Option, Verb
from polyplane.cli.options.help_text import help_of, overview
from polyplane.cli.options.shared_options import PARAMETERS, READING, SCREEN, reading_of
from polyplane.cli.options.verb_list import VERBS, verb_called
from polyplane.cli.screen import Screen

__all__ = ["run"]

UsageError: Any = typer.BadParameter.__bases__[0]  # typer has no name of its own for it
NUMBERS = {int: "a whole number", float: "a number"}
COMPLETION = "--show-completion", "--install-completion"


def run(words: Sequence[str]) -> int:
    """Do what a command line says; return the exit code."""
    if len(words) == 2 and words[0] in COMPLETION:  # the shell is named, typer need not find out
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    called = [name for name in words[:1] if name in VERBS]  # making them all takes 0.1 seconds
    verbs = [verb_called(name, words) for name in called or VERBS]
    command = typer.main.get_command(_app(verbs))
    try:
        code = command.main(args=list(words), prog_name="polyplane", standalone_mode=False)
    except UsageError as error:
        path = f"polyplane {words[0]}" if words[0] in VERBS else "polyplane"
        message = error.format_message()
        tell(f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{path} --help`.")
        return BAD_CALL
    return int(code or 0)


def _app(verbs: Sequence[Verb]) -> typer.Typer:
    app = typer.Typer(
        cls=_group_that_says(lambda: overview(verbs)),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_start)
    for verb in verbs:
        app.command(verb.name, cls=_command_that_says(verb))(_function_of(verb))
    return app


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"polyplane {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Nonlinear classifiers at the price of linear ones."""


def _function_of(verb: Verb) -> Callable[..., int]:
    """A function with the signature that typer reads."""

    def call(**values: Any) -> int:
        return _exit_code(verb, values)

    parameters = [*map(_argument, verb.arguments), *map(_option, verb.options)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__doc__ = verb.summary
    return call


def _argument(argument: Argument) -> inspect.Parameter:
    declared = typer.Argument(..., metavar=argument.shown, help=argument.help)
    annotation = list[str] if argument.is_many else str
    return _parameter(argument.name, annotation, declared)


def _option(option: Option) -> inspect.Parameter:
    *others, last = option.spellings
    names = [*others, f"{last}/{option.denial}" if option.denial else last]
    is_flag = option.kind is bool
    default = option.default
    if is_flag and not option.denial:
        default = False
    completes = (lambda: list(option.choices)) if option.choices else None
    declared = typer.Option(
        default, *names, metavar=None if is_flag else option.shown or None, help=option.help,
        hidden=option.is_hidden, show_default=False, autocompletion=completes,
    )  # fmt: skip
    kind = str if option.kind in NUMBERS else option.kind
    return _parameter(option.key, kind | None, declared)


def _parameter(name: str, annotation: Any, declared: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=declared, annotation=annotation)


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
    if verb.trains:
        import_scikit_learn()
    does: Callable[..., int | None] = importlib.import_module(verb.module).run
    return does(request, screen) if request is not None else does(screen, **asked)


def _value_of(option: Option, given: Any) -> Any:
    """Numbers of texts; typer's own words for what is none are not ours."""
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


# ---- help --------------------------------------------------------------------------------


def _command_that_says(verb: Verb) -> type[TyperCommand]:
    class Command(TyperCommand):
        """A command with our own help."""

        def format_help(self, ctx: Any, formatter: Any) -> None:
            formatter.write(help_of(verb))

    return Command


def _group_that_says(text: Callable[[], str]) -> type[TyperGroup]:
    class Group(TyperGroup):
        """The program with our own help."""

        def format_help(self, ctx: Any, formatter: Any) -> None:
            formatter.write(text())

    return Group
