"""Tiles: sixteen float32 lanes, one lane a plane, as values inside compiled loops.

Planes are feature-major, so what a row needs of sixteen planes at one feature is one contiguous
tile. A tile is a Numba value holding LLVM's <16 x float>: one register on AVX-512, two on AVX2,
four on NEON; LLVM splits it, nothing here asks for a machine.
A span is a plain pointer to the elements of an array: namedtuples of arrays cost reference
counting at every branch of a loop, namedtuples of spans cost nothing. Take spans only of arrays
that were handed in as arguments: Numba frees its own arrays after their last use by name.
Each primitive has two bodies: `llvm` emits the instructions (offsets count elements, nothing is
checked), `numpy` does the same under NUMBA_DISABLE_JIT=1, where a span is a flat array.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import errors
from numba.extending import intrinsic, models, register_model

from polyplane.engine.jit import jit_is_disabled

__all__ = [
    "LANES",
    "add",
    "at",
    "by_owner",
    "divide",
    "exponential",
    "fma",
    "fma_tiles",
    "full_mask",
    "horizontal_max",
    "horizontal_sum",
    "is_above",
    "lane_of",
    "load",
    "lowest_bit",
    "maximum",
    "multiply",
    "nonzero_mask",
    "prefetch",
    "put",
    "select_other",
    "select_own",
    "shifted",
    "span",
    "splat",
    "store",
    "store_features",
]

LANES = 16
I1, I8, I32, I64, F32 = (
    ir.IntType(1),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.FloatType(),
)
FLOATS, INTS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)
LOWEST = ir.Constant(FLOATS, [float("-inf")] * LANES)
ZEROS, ONES = (ir.Constant(FLOATS, [x] * LANES) for x in (0.0, 1.0))
LEAST_EXPONENT, MOST_EXPONENT = -87.0, 88.0  # exp of less is 0, of more that of the most
EXPONENTIAL_SERIES = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
CONTRACT = ["contract"]  # fuses multiply and add where the machine can; llvm.fma would call libm


class TileType(types.Type):  # type: ignore[misc]
    """Numba's name for a tile."""

    def __init__(self) -> None:
        super().__init__(name="polyplane_tile")


@register_model(TileType)
class TileModel(models.PrimitiveModel):  # type: ignore[misc]
    """A tile lives in registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS)


class SpanType(types.Type):  # type: ignore[misc]
    """Numba's name for a span of elements of `dtype`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"polyplane_span_{dtype}")


@register_model(SpanType)
class SpanModel(models.PrimitiveModel):  # type: ignore[misc]
    """A span is a pointer."""

    def __init__(self, manager: Any, kind: Any) -> None:
        element = manager.lookup(kind.dtype).get_data_type()
        super().__init__(manager, kind, element.as_pointer())


TILE, OFFSET, FLOAT, CLASS, NOTHING = (
    TileType(),
    types.intp,
    types.float32,
    types.int32,
    types.void,
)
SPAN = "span"  # as an argument: any span; as a result: one like the first argument
ELEMENT = "element"  # as an argument or result: an element of the first span


def primitive(
    result: Any, arguments: tuple[Any, ...], llvm: Callable[..., Any], numpy: Callable[..., Any]
) -> Any:
    """One operation with its two bodies; `result` and `arguments` are Numba types."""
    if jit_is_disabled():
        return numpy

    def typer(context: Any, *given: Any) -> Any:
        def meant(wanted: Any, kind: Any) -> Any:
            return kind if wanted is SPAN else given[0].dtype if wanted is ELEMENT else wanted

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            out = llvm(builder, *values)
            return context.get_dummy_value() if signature.return_type is NOTHING else out

        kinds = [meant(w, k) for w, k in zip(arguments, given, strict=True)]
        return meant(result, given[0])(*kinds), generate

    names = ["context", *(f"argument{i}" for i in range(len(arguments)))]
    typer.__signature__ = Signature(  # type: ignore[attr-defined]  # Numba refuses *given
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return intrinsic(typer)


def _span() -> Any:
    if jit_is_disabled():
        return lambda array: array.reshape(-1)

    def typer(context: Any, array: Any) -> Any:
        if array.layout != "C":
            raise errors.TypingError("a span covers a C-contiguous array")

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, values[0]).data

        return SpanType(array.dtype)(array), generate

    return intrinsic(typer)


span = _span()


def _vector(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())


def _load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    return builder.load(_vector(builder, pointer, offset, kind), align=1)


def _splat(builder: Any, number: Any, kind: Any = FLOATS) -> Any:
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(INTS, [0] * LANES))


def _call(builder: Any, name: str, result: Any, values: Any, fastmath: Any = ()) -> Any:
    """An LLVM intrinsic by its full name: llvmlite cannot mangle vector types."""
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, [value.type for value in values]), name
    )
    return builder.call(function, values, fastmath=fastmath)


def _is_own(builder: Any, owner: Any, offset: Any, label: Any) -> Any:
    owners = _load(builder, owner, offset, INTS)
    return builder.icmp_signed("==", owners, _splat(builder, label, INTS))


def _bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(LANES)), I64)


def _nonzero(builder: Any, array: Any, offset: Any) -> Any:
    element = array.type.pointee
    kind = ir.VectorType(element, LANES)
    vector = _load(builder, array, offset, kind)
    zeros = ir.Constant(kind, [0] * LANES)
    if isinstance(element, ir.IntType):
        return _bits(builder, builder.icmp_unsigned("!=", vector, zeros))
    return _bits(builder, builder.fcmp_unordered("!=", vector, zeros))


def _as_floats(builder: Any, vector: Any) -> Any:
    element = vector.type.element
    if element == F32:
        return vector
    if isinstance(element, ir.IntType):
        return builder.uitofp(vector, FLOATS)
    return builder.fptrunc(vector, FLOATS)


def _store_features(builder: Any, index: Any, n: Any, feature: Any) -> Any:
    lanes = ir.Constant(INTS, list(range(LANES)))
    features = builder.add(_splat(builder, builder.trunc(feature, I32), INTS), lanes)
    builder.store(features, _vector(builder, index, n, INTS), align=4)


def _prefetch(builder: Any, array: Any, offset: Any) -> Any:
    address = builder.bitcast(builder.gep(array, [offset]), I8.as_pointer())
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), [address, I32(0), I32(3), I32(1)])


def _horizontal_max(builder: Any, tile: Any) -> Any:
    return _call(builder, "llvm.vector.reduce.fmax.v16f32", F32, [tile], ["nnan", "nsz"])


def _horizontal_sum(builder: Any, tile: Any) -> Any:
    return _call(builder, "llvm.vector.reduce.fadd.v16f32", F32, [F32(0.0), tile], ["reassoc"])


def _fma(builder: Any, total: Any, number: Any, tile: Any) -> Any:
    product = builder.fmul(_splat(builder, number), tile, flags=CONTRACT)
    return builder.fadd(total, product, flags=CONTRACT)


def _fma_tiles(builder: Any, total: Any, tile: Any, other: Any) -> Any:
    return builder.fadd(total, builder.fmul(tile, other, flags=CONTRACT), flags=CONTRACT)


def _exponential(builder: Any, tile: Any) -> Any:
    """exp(x) = 2^n exp(r) with n = round(x / log 2), |r| <= log(2) / 2 and a polynomial for exp(r).

    The coefficients are those of Cephes' expf. Adding 1.5 * 2^23 rounds x / log 2 and leaves n in
    the low bits of the sum; log 2 is taken off in two parts, so that r is exact to the last bit.
    """

    def constant(number: float) -> Any:
        return ir.Constant(FLOATS, [number] * LANES)

    def multiply_add(x: Any, y: Any, z: Any) -> Any:
        return builder.fadd(builder.fmul(x, y, flags=CONTRACT), z, flags=CONTRACT)

    below = builder.fcmp_ordered("<", tile, constant(LEAST_EXPONENT))
    above = builder.fcmp_ordered(">", tile, constant(MOST_EXPONENT))
    x = builder.select(below, constant(LEAST_EXPONENT), tile)
    x = builder.select(above, constant(MOST_EXPONENT), x)
    shift = constant(12_582_912.0)
    shifted = multiply_add(x, constant(1.4426950408889634), shift)
    n = builder.fsub(shifted, shift)
    r = multiply_add(n, constant(-0.693359375), x)
    r = multiply_add(n, constant(2.12194440e-4), r)
    series = constant(EXPONENTIAL_SERIES[0])
    for coefficient in EXPONENTIAL_SERIES[1:]:
        series = multiply_add(series, r, constant(coefficient))
    series = multiply_add(series, builder.fmul(r, r), builder.fadd(r, ONES))
    bits = builder.sub(builder.bitcast(shifted, INTS), builder.bitcast(shift, INTS))
    bits = builder.add(bits, ir.Constant(INTS, [127] * LANES))
    power = builder.bitcast(builder.shl(bits, ir.Constant(INTS, [23] * LANES)), FLOATS)
    return builder.select(below, ZEROS, builder.fmul(series, power))


def _numpy_exponential(tile: Any) -> Any:
    inside = np.minimum(tile, np.float32(MOST_EXPONENT))
    return np.where(tile < LEAST_EXPONENT, np.float32(0), np.exp(inside))


def _lane_of(builder: Any, tile: Any, number: Any) -> Any:
    equal = builder.fcmp_ordered("==", tile, _splat(builder, number))
    return builder.cttz(_bits(builder, equal), I1(0))


def _first_true(flags: Any) -> int:
    return int(np.append(np.flatnonzero(flags), 64)[0])


def _slice(offset: int) -> slice:
    return slice(offset, offset + LANES)


# one element, without Python's wrap-around of negative indices
at = primitive(ELEMENT, (SPAN, OFFSET), lambda b, p, i: b.load(b.gep(p, [i])), lambda a, i: a[i])
put = primitive(
    NOTHING,
    (SPAN, OFFSET, ELEMENT),
    lambda b, p, i, x: b.store(x, b.gep(p, [i])),
    lambda a, i, x: a.__setitem__(i, x),
)
# the span that begins so many elements later
shifted = primitive(SPAN, (SPAN, OFFSET), lambda b, p, i: b.gep(p, [i]), lambda a, i: a[i:])
load = primitive(
    TILE,
    (SPAN, OFFSET),
    lambda b, p, o: _as_floats(b, _load(b, p, o, ir.VectorType(p.type.pointee, LANES))),
    lambda a, o: a[_slice(o)].astype(np.float32),
)
store = primitive(
    NOTHING,
    (SPAN, OFFSET, TILE),
    lambda b, p, o, t: b.store(t, _vector(b, p, o, FLOATS), align=4),
    lambda a, o, t: a.__setitem__(_slice(o), t),
)
prefetch = primitive(NOTHING, (SPAN, OFFSET), _prefetch, lambda a, o: None)
splat = primitive(TILE, (FLOAT,), _splat, lambda x: np.full(LANES, x, np.float32))
add = primitive(TILE, (TILE, TILE), lambda b, t, u: b.fadd(t, u), lambda t, u: t + u)
multiply = primitive(TILE, (TILE, TILE), lambda b, t, u: b.fmul(t, u), lambda t, u: t * u)
divide = primitive(TILE, (TILE, TILE), lambda b, t, u: b.fdiv(t, u), lambda t, u: t / u)
fma = primitive(TILE, (TILE, FLOAT, TILE), _fma, lambda t, x, u: t + np.float32(x) * u)
fma_tiles = primitive(TILE, (TILE, TILE, TILE), _fma_tiles, lambda t, u, v: t + u * v)
maximum = primitive(
    TILE,
    (TILE, TILE),
    lambda b, t, u: b.select(b.fcmp_ordered(">", t, u), t, u),
    np.maximum,
)
horizontal_max = primitive(FLOAT, (TILE,), _horizontal_max, np.max)
horizontal_sum = primitive(FLOAT, (TILE,), _horizontal_sum, np.sum)

# lanes whose owner is the class / is another class; minus infinity elsewhere
select_own = primitive(
    TILE,
    (TILE, SPAN, OFFSET, CLASS),
    lambda b, t, p, o, c: b.select(_is_own(b, p, o, c), t, LOWEST),
    lambda t, a, o, c: np.where(a[_slice(o)] == c, t, np.float32(-np.inf)),
)
select_other = primitive(
    TILE,
    (TILE, SPAN, OFFSET, CLASS),
    lambda b, t, p, o, c: b.select(_is_own(b, p, o, c), LOWEST, t),
    lambda t, a, o, c: np.where(a[_slice(o)] == c, np.float32(-np.inf), t),
)
# the first tile in lanes whose owner is the class, the second elsewhere
by_owner = primitive(
    TILE,
    (TILE, TILE, SPAN, OFFSET, CLASS),
    lambda b, t, u, p, o, c: b.select(_is_own(b, p, o, c), t, u),
    lambda t, u, a, o, c: np.where(a[_slice(o)] == c, t, u),
)
# e^x, off by at most 2 units in the last place; 0 below -87, and e^88 above 88
exponential = primitive(TILE, (TILE,), _exponential, _numpy_exponential)
# 1 in the lanes above the number, 0 elsewhere
is_above = primitive(
    TILE,
    (TILE, FLOAT),
    lambda b, t, x: b.select(b.fcmp_ordered(">", t, _splat(b, x)), ONES, ZEROS),
    lambda t, x: (t > x).astype(np.float32),
)
# first lane equal to the number, 16 or more when there is none
lane_of = primitive(OFFSET, (TILE, FLOAT), _lane_of, lambda t, x: _first_true(t == x))

# packing of dense rows: which of sixteen elements are not zero, as bits
nonzero_mask = primitive(
    types.int64,
    (SPAN, OFFSET),
    _nonzero,
    lambda a, o: int((1 << np.flatnonzero(a[_slice(o)])).sum()),
)
full_mask = (1 << LANES) - 1
lowest_bit = primitive(
    OFFSET, (types.int64,), lambda b, m: b.cttz(m, I1(1)), lambda m: int(m & -m).bit_length() - 1
)
store_features = primitive(
    NOTHING,
    (SPAN, OFFSET, OFFSET),
    _store_features,
    lambda index, n, f: index.__setitem__(_slice(n), np.arange(f, f + LANES)),
)
