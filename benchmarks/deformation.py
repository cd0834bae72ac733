"""Small square images, deformed at random: row i of a stream is a function of (seed, i) alone.

Steps of a row  (1) its image is copied into a frame of zeros; (2) strokes grow towards the largest
                of five neighbours, or shrink towards the smallest; (3) four neighbours become one
                word; (4) every pixel finds the place it comes from: a linear map about the
                centre, a shift, and two smooth fields; (5) words are fetched and blended.
Numbers         whole throughout, so that no machine, vector width or thread changes a bit. Places
                are int16 in 1/256 of a pixel; the limits below keep every sum inside.
Chance          splitmix64 of a key and a counter, so that any row can be made at any time.
Loops           plain ones over flat arrays, which the compiler turns into vectors of 16-bit lanes:
                casts after every operation keep the lanes narrow, and the numbers of a change
                come from memory, where they have 16 bits. Only fetching goes word by word.
Papers          Loosli, Canu, Bottou (2007), Training invariant support vector machines using
                selective sampling, for an endless stream of digits deformed by stored smooth
                fields (they add first derivatives where we move pixels);
                Simard, Steinkraus, Platt (2003), doi:10.1109/ICDAR.2003.1227801, elastic fields;
                Steele, Lea, Flood (2014), doi:10.1145/2660193.2660195, splitmix64;
                Black, Rogaway (2002), doi:10.1007/3-540-45760-7_9, permutations without a table.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import LANES, NOTHING, OFFSET, SPAN, at, prefetch, primitive, put, span

__all__ = [
    "LARGEST_SIDE",
    "Frame",
    "Steps",
    "deform_rows",
    "empty_frame",
    "smooth_fields",
    "sources_of",
    "steps_of",
]

LARGEST_SIDE = 64  # of an image, in pixels
PIXEL = 256  # one pixel as a place
SLOPE, MOST_SLOPE = 512, 256  # of the linear map: one, and the most beside the identity
MOST_SHIFT = 32 * PIXEL - 1
PULL, MOST_PULL = 32, 255  # the factor of a field that makes its deviation one pixel, and the most
FIELD_DEVIATION, MOST_OF_FIELD = 32, 127
THICKNESS = 128  # the one that reaches the largest or smallest neighbour
BELL_DEVIATION = 65_536 / math.sqrt(3)  # of a sum of four 16-bit numbers
N_FIELDS = 128
BLURS = 3  # by boxes: nearly a Gaussian
ROWS_AHEAD, CACHE_LINE = 4, 64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
U16, U27, U30, U31, U32, U48 = (np.uint64(bits) for bits in (16, 27, 30, 31, 32, 48))
LOW_BITS = np.uint64(0xFFFF)
ORDER, CHANGE, NOISE = np.uint64(1), np.uint64(2), np.uint64(3)  # what a seed is used for
EVERY_OTHER_BYTE = np.uint32(0x00FF00FF)
EIGHT, SIXTEEN, LOW_HALF = np.uint32(8), np.uint32(16), np.uint32(0xFFFF)
ONE, HALF = np.uint32(256), np.uint32(0x8000)  # a share of one, and half a grey level


class Steps(NamedTuple):
    """How much one unit of chance changes each part of a deformation, times 65,536."""

    shift: Any
    rotation: Any
    shear: Any
    scale: Any
    elastic: Any
    thickness: Any


class Frame(NamedTuple):
    """Room for one image on its way; one loop at a time may use it."""

    side: Any
    image: Any  # [(side + 2)^2] uint8, zeros around the image
    strokes: Any  # the same after strokes have grown or shrunk
    words: Any  # [(side + 2)^2] uint32: a pixel, the one below, and the two to their right
    change: Any  # [9] int16: what `draw_change` writes
    columns: Any  # [side^2] int16: half pixels from the centre
    lines: Any  # [side^2] int16
    places: Any  # [side^2] uint16: the word that a pixel is made of
    x_shares: Any  # [side^2] uint8: how much of its right half, of 256
    y_shares: Any  # [side^2] uint8: how much of its lower half, of 256
    fetched: Any  # [side^2] uint32: the word itself


def empty_frame(side: int) -> Frame:
    """A frame for images of side * side pixels."""
    n, padded = side * side, (side + 2) ** 2
    from_centre = np.arange(1 - side, side, 2, dtype=np.int16)
    return Frame(
        side=side,
        image=np.zeros(padded, np.uint8),
        strokes=np.zeros(padded, np.uint8),
        words=np.zeros(padded, np.uint32),
        change=np.zeros(9, np.int16),
        columns=np.tile(from_centre, side),
        lines=np.repeat(from_centre, side),
        places=np.zeros(n, np.uint16),
        x_shares=np.zeros(n, np.uint8),
        y_shares=np.zeros(n, np.uint8),
        fetched=np.zeros(n, np.uint32),
    )


def steps_of(
    shift: float, rotation: float, shear: float, scale: float, elastic: float, thickness: float
) -> Steps:
    """Steps from standard deviations; shift and elastic are in pixels, rotation in radians."""
    unit = 65_536 / BELL_DEVIATION
    return Steps(
        shift=round(unit * 65_536 * PIXEL * shift),
        rotation=round(unit * 65_536 * SLOPE * rotation),
        shear=round(unit * 65_536 * SLOPE * shear),
        scale=round(unit * 65_536 * SLOPE * scale),
        elastic=round(65_536 * PULL * elastic),
        thickness=round(unit * 65_536 * THICKNESS * thickness),
    )


# ---- chance ------------------------------------------------------------------------------


@inlined
def drawn(key: Any, counter: Any) -> Any:
    """64 random bits: what splitmix64 started at `key` gives after `counter` others."""
    z = key + (np.uint64(counter) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> U30)) * FACTORS[0]
    z = (z ^ (z >> U27)) * FACTORS[1]
    return z ^ (z >> U31)


@inlined
def below(bits: Any, n: Any) -> Any:
    """Uniform among 0 ... n - 1 by the upper 32 bits, for n below 2^32."""
    return np.int64(((bits >> U32) * np.uint64(n)) >> U32)


@inlined
def bell(bits: Any, step: Any) -> Any:
    """About normal and never beyond 3.5 deviations: a sum of four uniform numbers."""
    low = np.int64(bits & LOW_BITS) + np.int64((bits >> U16) & LOW_BITS)
    high = np.int64((bits >> U32) & LOW_BITS) + np.int64(bits >> U48)
    return ((low + high - 2 * 65_535) * step) >> 32


@inlined
def pull(bits: Any, step: Any) -> Any:
    """Half to three halves of the step, up or down, by the upper 17 bits."""
    size = (step * (32_768 + np.int64((bits >> U31) & LOW_BITS))) >> 32
    return size if bits >> np.uint64(63) else -size


@inlined
def permuted(place: Any, n: Any, width: Any, key: Any) -> Any:
    """Where 0 <= place < n goes in a permutation of them; width^2 is at least n.

    Lines and columns of a rectangle push each other around; what lands beyond n goes on.
    """
    height = (n + width - 1) // width
    while True:
        line, column = place // width, place % width
        for turn in range(0, 6, 2):
            line = (line + below(drawn(key, turn * n + column), height)) % height
            column = (column + below(drawn(key, (turn + 1) * n + line), width)) % width
        place = line * width + column
        if place < n:
            return place


@jit
def _fill_sources(seed: Any, start: Any, n_images: Any, width: Any, out: Any) -> None:
    order_key = drawn(seed, ORDER)
    for k in range(out.size):
        turn, place = (start + k) // n_images, (start + k) % n_images
        out[k] = permuted(place, n_images, width, drawn(order_key, turn))


def sources_of(seed: Any, start: int, n: int, n_images: int) -> Any:
    """The image of each row: every turn of n_images rows shows each once, in its own order."""
    out = np.empty(n, np.int64)
    _fill_sources(seed, start, n_images, math.isqrt(n_images - 1) + 1, out)
    return out


@jit
def _fill_noise(seed: Any, out: Any) -> None:
    key = drawn(seed, NOISE)
    for k in range(out.size):
        out[k] = np.int64(drawn(key, k) >> U48) - 32_768


def smooth_fields(seed: Any, side: int) -> Any:
    """[field, pixel] int8: smooth noise of deviation FIELD_DEVIATION."""
    width = 2 * (side // 6) + 1
    rough = side + BLURS * (width - 1)
    noise = np.empty(N_FIELDS * rough * rough, np.int64)
    _fill_noise(seed, noise)
    fields, kernel = noise.reshape(N_FIELDS, rough, rough), np.ones(1, np.int64)
    for _ in range(BLURS):
        fields = _box_sums(_box_sums(fields, width).swapaxes(1, 2), width).swapaxes(1, 2)
        kernel = np.convolve(kernel, np.ones(width, np.int64))
    deviation = 65_536 / math.sqrt(12) * int(kernel @ kernel)
    scaled = np.rint(fields * (FIELD_DEVIATION / deviation))
    kept = np.clip(scaled, -MOST_OF_FIELD, MOST_OF_FIELD).astype(np.int8)
    return np.ascontiguousarray(kept).reshape(N_FIELDS, side * side)


def _box_sums(fields: Any, width: int) -> Any:
    """Sums of `width` neighbours along the last axis."""
    sums = np.cumsum(fields, axis=2)
    sums = np.concatenate([np.zeros_like(sums[:, :, :1]), sums], axis=2)
    return sums[:, :, width:] - sums[:, :, :-width]


# ---- one image ---------------------------------------------------------------------------


def _copy_bytes(builder: Any, to: Any, to_offset: Any, source: Any, offset: Any) -> None:
    kind = ir.VectorType(ir.IntType(8), LANES).as_pointer()
    read = builder.load(builder.bitcast(builder.gep(source, [offset]), kind), align=1)
    builder.store(read, builder.bitcast(builder.gep(to, [to_offset]), kind), align=1)


# sixteen bytes of the second span go to the first
copy_tile = primitive(
    NOTHING,
    (SPAN, OFFSET, SPAN, OFFSET),
    _copy_bytes,
    lambda to, o, source, k: to.__setitem__(slice(o, o + LANES), source[k : k + LANES]),
)


@inlined
def copy_into_frame(images: Any, first: Any, side: Any, image: Any) -> None:
    """Copy the image whose pixels begin at `first`."""
    for line in range(side):
        to, source = (line + 1) * (side + 2) + 1, first + line * side
        if side < LANES:
            for c in range(side):
                put(image, to + c, at(images, source + c))
        else:
            for c in range(0, side - LANES, LANES):
                copy_tile(image, to + c, images, source + c)
            copy_tile(image, to + side - LANES, images, source + side - LANES)


@inlined
def larger(a: Any, b: Any) -> Any:
    """Like `max`, which would widen the lanes."""
    return a if a > b else b


@inlined
def smaller(a: Any, b: Any) -> Any:
    """Like `min`, which would widen the lanes."""
    return a if a < b else b


@inlined
def product(a: Any, b: Any, shift: Any) -> Any:
    """a * b / 2^shift in 16 bits, rounded down."""
    return np.int16(np.int16(np.int16(a) * np.int16(b)) >> np.int16(shift))


@inlined
def towards(goal: Any, pixel: Any, thickness: Any) -> Any:
    """The pixel, moved to its goal by the share of the thickness."""
    distance = np.int16(np.int16(goal) - np.int16(pixel))
    return np.uint8(np.int16(np.int16(pixel) + product(distance, thickness, 7)))


@inlined
def change_strokes(frame: Any) -> None:
    """Grow or shrink all strokes; what would leave the image is lost."""
    image, w = frame.image, frame.side + 2
    thickness, thinness = at(frame.change, 8), np.int16(-at(frame.change, 8))
    if thickness > 0:
        for k in range(w, w * (w - 1)):
            across = larger(at(image, k - 1), at(image, k + 1))
            along = larger(at(image, k - w), at(image, k + w))
            goal = larger(larger(across, along), at(image, k))
            put(frame.strokes, k, towards(goal, at(image, k), thickness))
    else:
        for k in range(w, w * (w - 1)):
            across = smaller(at(image, k - 1), at(image, k + 1))
            along = smaller(at(image, k - w), at(image, k + w))
            goal = smaller(smaller(across, along), at(image, k))
            put(frame.strokes, k, towards(goal, at(image, k), thinness))
    for line in range(w):
        put(frame.strokes, line * w, np.uint8(0))
        put(frame.strokes, line * w + w - 1, np.uint8(0))


@inlined
def joined(left: Any, right: Any, bits: Any) -> Any:
    """Two pixels as one number, the right one so many bits higher."""
    return np.uint32(np.uint32(left) | np.uint32(np.uint32(right) << np.uint32(bits)))


@inlined
def join_neighbours(frame: Any) -> None:
    """Put the four pixels between which a place may lie into one word."""
    pixels, w = frame.strokes, frame.side + 2
    for k in range(w * (w - 1) - 1):
        left = joined(at(pixels, k), at(pixels, k + w), 8)
        right = joined(at(pixels, k + 1), at(pixels, k + w + 1), 8)
        put(frame.words, k, joined(left, right, 16))


@inlined
def kept_inside(place: Any, edge: Any) -> Any:
    """The place counted from the first zero around the image, to the last one at most."""
    kept = smaller(larger(place, np.int16(-edge)), np.int16(edge - 1))
    return np.uint16(np.int16(kept + edge))


@inlined
def mapped(own: Any, other: Any, change: Any, k: Any, field: Any) -> Any:
    """One coordinate of the place that a pixel comes from; numbers k to k + 3 belong to it."""
    straight = np.int16(np.int16(own << np.int16(7)) + at(change, k))
    turned = np.int16(product(own, at(change, k + 1), 2) + product(other, at(change, k + 2), 2))
    return np.int16(np.int16(straight + turned) + product(field, at(change, k + 3), 2))


@inlined
def find_places(frame: Any, fields: Any, x_field: Any, y_field: Any) -> None:
    """The word of each pixel, and its shares of the word's right and lower half."""
    edge, w = np.int16((frame.side + 1) * (PIXEL // 2)), np.uint16(frame.side + 2)
    for p in range(frame.side * frame.side):
        column, line = at(frame.columns, p), at(frame.lines, p)
        x = kept_inside(mapped(column, line, frame.change, 0, at(fields, x_field + p)), edge)
        y = kept_inside(mapped(line, column, frame.change, 4, at(fields, y_field + p)), edge)
        first = np.uint16(np.uint16(y >> np.uint16(8)) * w)
        put(frame.places, p, np.uint16(first + np.uint16(x >> np.uint16(8))))
        put(frame.x_shares, p, np.uint8(x & np.uint16(255)))
        put(frame.y_shares, p, np.uint8(y & np.uint16(255)))


@inlined
def blended(first: Any, second: Any, share: Any) -> Any:
    """256 times the mean of both, `share` of 256 being the second's."""
    return np.uint32(np.uint32(first * np.uint32(ONE - share)) + np.uint32(second * share))


@inlined
def fetch_and_blend(frame: Any, out: Any, first: Any) -> None:
    """Write the pixels of a row."""
    n = frame.side * frame.side
    for p in range(n):
        put(frame.fetched, p, at(frame.words, np.int64(at(frame.places, p))))
    for p in range(n):
        word = at(frame.fetched, p)
        upper = np.uint32(word & EVERY_OTHER_BYTE)  # left and right at once, 16 bits each
        lower = np.uint32(np.uint32(word >> EIGHT) & EVERY_OTHER_BYTE)
        both = blended(upper, lower, np.uint32(at(frame.y_shares, p)))
        left, right = np.uint32(both & LOW_HALF), np.uint32(both >> SIXTEEN)
        grey = blended(left, right, np.uint32(at(frame.x_shares, p)))
        put(out, first + p, np.uint8(np.uint32(grey + HALF) >> SIXTEEN))


# ---- many rows ---------------------------------------------------------------------------


@inlined
def put_bounded(change: Any, k: Any, number: Any, limit: Any) -> None:
    """Number k of a change, or the limit that it passes."""
    put(change, k, np.int16(min(max(number, -limit), limit)))


@inlined
def draw_change(key: Any, steps: Any, change: Any) -> None:
    """Write the shift, slopes and pull of x, the same of y, and the thickness."""
    turn = bell(drawn(key, 0), steps.rotation)
    shorter = turn * turn // (2 * SLOPE)  # the cosine; the sine is the angle itself
    slant = bell(drawn(key, 1), steps.shear)
    put_bounded(change, 0, bell(drawn(key, 2), steps.shift), MOST_SHIFT)
    put_bounded(change, 1, bell(drawn(key, 3), steps.scale) - shorter, MOST_SLOPE)
    put_bounded(change, 2, slant - turn, MOST_SLOPE)
    put_bounded(change, 3, pull(drawn(key, 4), steps.elastic), MOST_PULL)
    put_bounded(change, 4, bell(drawn(key, 5), steps.shift), MOST_SHIFT)
    put_bounded(change, 5, bell(drawn(key, 6), steps.scale) - shorter, MOST_SLOPE)
    put_bounded(change, 6, turn, MOST_SLOPE)
    put_bounded(change, 7, pull(drawn(key, 7), steps.elastic), MOST_PULL)
    put_bounded(change, 8, bell(drawn(key, 8), steps.thickness), THICKNESS)


@inlined
def spans_of_frame(frame: Any) -> Any:
    """The frame as a loop sees it."""
    return Frame(
        frame.side,
        span(frame.image),
        span(frame.strokes),
        span(frame.words),
        span(frame.change),
        span(frame.columns),
        span(frame.lines),
        span(frame.places),
        span(frame.x_shares),
        span(frame.y_shares),
        span(frame.fetched),
    )


@jit
def deform_rows(
    images: Any, sources: Any, seed: Any, start: Any, steps: Any, fields: Any, frame: Any, out: Any
) -> None:
    """`out[k]` = row start + k of the stream, made of image `sources[k]`."""
    n_fields, n = fields.shape
    pixels, bank, to, spans = span(images), span(fields), span(out), spans_of_frame(frame)
    change_key = drawn(seed, CHANGE)
    for k in range(sources.size):
        later = sources[min(k + ROWS_AHEAD, sources.size - 1)] * n
        for o in range(0, n, CACHE_LINE):
            prefetch(pixels, later + o)
        key = drawn(change_key, start + k)
        draw_change(key, steps, spans.change)
        x_field, y_field = below(drawn(key, 9), n_fields), below(drawn(key, 10), n_fields)
        copy_into_frame(pixels, sources[k] * n, spans.side, spans.image)
        change_strokes(spans)
        join_neighbours(spans)
        find_places(spans, bank, x_field * n, y_field * n)
        fetch_and_blend(spans, to, k * n)
