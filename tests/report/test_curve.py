"""Marks stand where their errors are."""

import math

import pytest

from polyplane.report.curve import curve

POINTS = [("0.1", 0.30, 0.01), ("0.01", 0.10, 0.02), ("auto", 0.20, 0.0)]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_larger_errors_stand_farther_right(width):
    lines = curve(POINTS, width)
    places = [line.index("●") for line in lines]
    assert places[1] < places[2] < places[0]
    assert places[0] - places[2] == pytest.approx(places[2] - places[1], abs=1)
    assert all(len(line) <= max(width, 23) for line in lines)


def test_names_and_numbers_stand_beside_the_marks():
    lines = curve(POINTS, 60)
    assert [line.split()[0] for line in lines] == ["0.1", "0.01", "auto"]
    assert [line.split()[-1] for line in lines] == ["30.00%", "10.00%", "20.00%"]
    assert "├" in lines[1]
    assert "├" not in lines[2]


def test_ascii_is_ascii():
    assert all(line.isascii() for line in curve(POINTS, 60, is_ascii=True))


def test_a_single_point_and_unknown_spreads_are_drawn():
    (line,) = curve([("x", 0.5, math.nan)], 40)
    assert "●" in line
