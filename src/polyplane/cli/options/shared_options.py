"""Options that several verbs share: of the screen, of reading, and of algorithms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.algorithms import (
    ALGORITHM,
    Algorithm,
    Parameter,
    algorithms,
    stored_facts,
)
from polyplane.cli.options.declarations import Option

__all__ = [
    "PARAMETERS",
    "READING",
    "SCREEN",
    "SEED",
    "algorithm_option",
    "parameter_options",
    "reading_of",
    "reading_options",
    "screen_options",
    "words_of_reading",
]

SCREEN, READING, PARAMETERS = "screen", "reading", "parameters"  # groups
SEED = Option("seed", "Seed: the same seed, rows and versions give the same model.", int, shown="N")
PATHS = {"labels"}
COLUMNS = {"label", "drop", "text_columns"}  # a name or a position
MANY = {"drop", "text_columns"}
WHOLE = {"n_features", "base", "n_hash"}
FORMAT_WORDS = {"libsvm": "LIBSVM text", "csv": "CSV", "parquet": "Parquet", "arrow": "Arrow"}


def screen_options() -> list[Option]:
    """What is shown, and where."""
    panel = "Output"
    return [
        Option("json", "Print results as JSON, and nothing else, on standard output.", bool,
               panel=panel, group=SCREEN),
        Option("quiet", "No progress and no remarks.", bool, ("--quiet", "-q"), panel=panel,
               group=SCREEN),
        Option("debug", "Show the traceback of an error.", bool, panel=panel, group=SCREEN),
    ]  # fmt: skip


# ---- reading -----------------------------------------------------------------------------


def reading_options() -> list[Option]:
    """Those of `ReadOptions`, and what happens to bad rows."""
    made = [_reading_option(**plain) for plain in stored_facts()["reading"]]
    skips = Option(
        "on_bad",
        "A row that cannot be read is an error (raise), or is left out and counted (skip).",
        shown="raise|skip", choices=("raise", "skip"), panel="Reading rows", group=READING,
    )  # fmt: skip
    return [*made, skips]


def _reading_option(
    name: str, default: Any, choices: Sequence[str], formats: Sequence[str], help: str
) -> Option:
    shown = "|".join(choices) or "TEXT"
    shown = "WHOLE" if name in WHOLE and not choices else shown
    shown = "FILE" if name in PATHS else "COLUMN" if name in COLUMNS else shown
    is_flag = name in ("text_labels", "header")
    names = [FORMAT_WORDS.get(form, form) for form in formats]
    homes = f" ({', '.join(names)})" if names else ""
    return Option(
        name, help + homes, bool if is_flag else list[str] if name in MANY else str,
        shown="" if is_flag else shown, can_be_denied=is_flag, choices=choices,
        panel="Reading rows", group=READING,
    )  # fmt: skip


def reading_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `polyplane.read` for those on the command line."""
    return {name: _reading_value(name, text) for name, text in given.items()}


def _reading_value(name: str, given: Any) -> Any:
    if name in MANY:
        return [_column_of(text) for text in given]
    if name == "label":
        return None if given == "none" else _column_of(given)
    if name == "delimiter":
        return "\t" if given in ("tab", "\\t") else given
    if name in WHOLE:
        try:
            return int(given)
        except ValueError:
            option = f"--{name.replace('_', '-')}"
            raise CallError(f"{option} is {given!r}, expected a whole number.") from None
    return given


def words_of_reading(reading: Mapping[str, Any]) -> list[str]:
    """The words of a command line that ask for these options of reading: `reading_of` reversed."""
    by_name = {option.name: option for option in reading_options()}
    words = []
    for name, value in reading.items():
        option = by_name[name]
        if option.kind is bool:
            words.append(option.spellings[0] if value else option.denial)
            continue
        for one in value if name in MANY else [value]:
            text = "none" if one is None else "tab" if one == "\t" else str(one)
            joins = f"{option.spellings[0]}={text}" if text.startswith("-") else None
            words += [joins] if joins else [option.spellings[0], text]
    return words


def _column_of(text: str) -> str | int:
    return int(text) if text.removeprefix("-").isdecimal() else text


# ---- algorithms --------------------------------------------------------------------------


def algorithm_option(help: str) -> Option:
    """Which algorithm."""
    return Option(
        "algorithm", f"{help} Default: {ALGORITHM}.", names=("--algorithm", "-a"),
        shown="NAME", default=ALGORITHM, choices=tuple(algorithms()),
    )  # fmt: skip


def parameter_options(chosen: Algorithm | None = None) -> list[Option]:
    """Parameters of all algorithms; with one chosen, help speaks of it alone."""
    homes: dict[str, list[tuple[Algorithm, Parameter]]] = {}
    for algorithm in algorithms().values():
        for parameter in algorithm.parameters.values():
            homes.setdefault(parameter.name, []).append((algorithm, parameter))
    made = [_parameter_option(pairs, chosen) for pairs in homes.values()]
    order = ["Every algorithm", "Several algorithms", *(f"Only {name}" for name in algorithms())]
    return sorted(made, key=lambda option: order.index(option.panel) if not chosen else 0)


def _parameter_option(pairs: list[tuple[Algorithm, Parameter]], chosen: Algorithm | None) -> Option:
    own = [parameter for algorithm, parameter in pairs if algorithm == chosen]
    said = own[0] if own else _most_common([parameter for _, parameter in pairs])
    names = [algorithm.name for algorithm, _ in pairs]
    panel = "Every algorithm"
    if len(pairs) < len(algorithms()):
        panel = "Several algorithms" if len(pairs) > 1 else f"Only {names[0]}"
    words = [said.meaning]
    if own:
        panel = f"Options of {chosen.name}" if chosen else panel
        words.append(f"Default: {_shown(said.default)}.")
    else:
        if panel == "Several algorithms":
            words.append(f"For {_homes([algorithm for algorithm, _ in pairs])}.")
        words.append(_defaults(pairs))
    return Option(
        said.name, " ".join(words), bool if said.is_flag else str, (said.option,),
        "" if said.is_flag else _union_shown(own or [parameter for _, parameter in pairs]),
        can_be_denied=said.is_flag, choices=tuple(said.words), panel=panel, group=PARAMETERS,
        is_hidden=chosen is not None and not own,
    )  # fmt: skip


def _most_common(parameters: Sequence[Parameter]) -> Parameter:
    meanings = [parameter.meaning for parameter in parameters]
    return max(parameters, key=lambda parameter: meanings.count(parameter.meaning))


def _union_shown(parameters: Iterable[Parameter]) -> str:
    """What any of them takes."""
    kinds = [kind for parameter in parameters for kind in parameter.shown.split("|")]
    return "|".join(sorted(dict.fromkeys(kinds), key=lambda kind: (kind.islower(), kind == "none")))


def _homes(those: Sequence[Algorithm]) -> str:
    """Algorithms by name, or together where all with planes, or with kernels, are there."""
    words = []
    for has_planes, together in ((True, "those with planes"), (False, "those with kernels")):
        here = [one.name for one in those if one.has_planes == has_planes]
        kin = [one for one in algorithms().values() if one.has_planes == has_planes]
        words += [together] if len(here) == len(kin) else here
    return ", ".join(words)


def _defaults(pairs: Sequence[tuple[Algorithm, Parameter]]) -> str:
    by_default: dict[str, list[str]] = {}
    for algorithm, parameter in pairs:
        by_default.setdefault(_shown(parameter.default), []).append(algorithm.name)
    usual = max(by_default, key=lambda default: len(by_default[default]))
    others = [
        f"{default} for {', '.join(names)}"
        for default, names in by_default.items()
        if default != usual
    ]
    return f"Default: {', '.join([usual, *others])}."


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default is None else str(default)
