"""`python -m benchmarks` runs all, `python -m benchmarks speed memory` some."""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> int:
    known = sorted(
        module.name.removeprefix("bench_")
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if module.name.startswith("bench_")
    )
    wanted = sys.argv[1:] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    for name in wanted:
        importlib.import_module(f"benchmarks.bench_{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
