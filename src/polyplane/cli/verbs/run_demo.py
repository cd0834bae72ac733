"""`polyplane demo`."""

from polyplane.cli.screen import Screen
from polyplane.cli.verbs import demo

__all__ = ["run"]


def run(screen: Screen) -> None:
    """Show it; with --json only the numbers."""
    if not screen.json:
        demo.main()
        return
    outcomes = [outcome._asdict() for outcome in demo.compare(demo.digits())]
    for outcome in outcomes:
        del outcome["model"]
    screen.result({"outcomes": outcomes})
