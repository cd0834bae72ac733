"""`python -m polyplane` is the command `polyplane`."""

import sys

from polyplane.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
