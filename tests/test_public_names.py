"""What `import polyplane` promises, and what it costs."""

import subprocess
import sys

import pytest

import polyplane


@pytest.mark.parametrize("name", polyplane.__all__)
def test_every_public_name_is_there(name):
    assert getattr(polyplane, name) is not None
    assert name in dir(polyplane)


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'SomeClassifier'"):
        polyplane.SomeClassifier  # noqa: B018


def test_importing_the_package_loads_nothing_else():
    code = "import sys, polyplane; print({'numba', 'numpy', 'pyarrow'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
