"""Large files as ranges of whole rows, for readers that work apart.

Each format says how its files are cut. Files of other formats, compressed ones and text without
line feeds stay whole. The rows of all ranges, one after the other, are those of the file.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyplane.data.chunk_sizes import no_rows
from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.csv.format import Quotes, exact_ranges, quotes_in
from polyplane.data.formats.row_format import Range, Ranges
from polyplane.data.formats.text_ranges import lines_before
from polyplane.data.formats.which import FORMATS, ReadOptions, plain_format_of
from polyplane.data.table.layout import Layout

__all__ = ["Quotes", "Range", "exact_ranges", "quotes_in", "ranges_of", "read_range", "sample_of"]

LEAST_SAMPLE = 1 << 16  # bytes of a range


def ranges_of(path: str, options: ReadOptions, n_bytes: int) -> list[Range]:
    """Ranges of about so many bytes; those of CSV are exact after `exact_ranges`.

    A file that cannot be opened here is one range: whoever reads it says what is wrong with it.
    """
    try:
        form = plain_format_of(path, options) if os.path.isfile(path) else None
        size = os.path.getsize(path) if form is not None else 0
    except OSError:
        return [Range(path)]
    if form is None or form.ranges is None:
        return [Range(path)]
    return form.ranges.cut(path, options, size, n_bytes)


def read_range(
    part: Range, options: ReadOptions, settled: Mapping[str, Any], layout: Layout, skips_bad: bool
) -> Chunk:
    """The rows of a range, which may be none; `settled` is of LIBSVM text, `layout` of tables."""
    if part.start == part.stop:
        return no_rows(layout.width if layout.sources else 0)
    try:
        return _ranges(part).read(part, replace(options, **settled), BadRows(skips_bad), layout)
    except DataError as error:
        if error.line is None or part.is_first or not FORMATS[str(part.kind)].is_text:
            raise
        line = error.line + lines_before(part) - part.header.count(b"\n")
        raise DataError(error.problem, error.path, line, error.column) from None


def sample_of(parts: Sequence[Range], options: ReadOptions, n_bytes: int) -> Layout:
    """The layout that the first rows of all ranges give together, about so many bytes of them.

    Files whose columns are named otherwise than those of the first take no part.
    """
    layout = Layout()
    layout.grows = False
    learn = _ranges(parts[0]).learn
    assert learn is not None
    of_range = max(LEAST_SAMPLE, n_bytes // len(parts))
    learn(parts, options, BadRows(skips=True), layout, of_range)
    return layout


def _ranges(part: Range) -> Ranges:
    ranges = FORMATS[str(part.kind)].ranges
    assert ranges is not None
    return ranges
