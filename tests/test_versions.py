"""What `show_versions` prints."""

import sys

import numpy as np

import polyplane as pp
from polyplane import versions


def test_versions_of_what_is_installed_are_printed(capsys):
    pp.show_versions()
    lines = capsys.readouterr().out.splitlines()
    found = dict(line.split(maxsplit=1) for line in lines)
    assert found["polyplane"] == pp.__version__
    assert found["numpy"] == np.__version__
    assert found["python"] == sys.version.split()[0]
    assert set(versions.PACKAGES + versions.EXTRAS) <= set(found)


def test_an_absent_extra_is_named(monkeypatch):
    monkeypatch.setattr(versions, "EXTRAS", ("no-such-package",))
    assert versions.versions()["no-such-package"] == "not installed"
