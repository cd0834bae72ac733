"""The small benchmark runs, and its ratios are those of its times."""

import pytest

from tests.cli.documented import check


@pytest.mark.compiled
def test_ratios_are_those_of_times(call):
    found = check("bench", call("bench", "--rounds", "1", "--json", "-q").out)
    assert found["rounds"] == 1
    tasks = {race["task"] for race in found["races"]}
    assert len(tasks) == 2
    for task in tasks:
        races = [race for race in found["races"] if race["task"] == task]
        peer = next(race for race in races if "scikit-learn" in race["machine"])
        assert peer["ratio"] == 1.0
        for race in races:
            assert race["ratio"] == pytest.approx(race["epoch_seconds"] / peer["epoch_seconds"])
            assert 0 < race["error"] < 0.5
