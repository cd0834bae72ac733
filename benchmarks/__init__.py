"""What the README and docs claim, measured: `python -m benchmarks [speed prediction ...]`.

Times are ratios against a peer in the same run: jobs take turns, medians are compared. Data comes
from $POLYPLANE_DATA. Each benchmark prints a table and writes it to `benchmarks/results/`.
"""
