"""Lanes: eight numbers at a time, one an entry, for functions that are written once.

Compiled, lanes are a vector of LLVM with the operators of a NumPy array; under NUMBA_DISABLE_JIT=1
they are one. What else can be done with them is a method of `Compiled` and of `Plain`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from polyplane.engine.tiles import F32, I8, I32, I64, primitive

__all__ = ["LANES", "on_lanes"]

LANES = 8
I16, F64 = ir.IntType(16), ir.DoubleType()
PAIRS, FOURS = 10 * 2**8 + 1, 100 * 2**16 + 1  # digits to pairs to fours: each joins the next


def _operator(whole: str, floating: str = "") -> Any:
    def work(one: "Vector", other: Any) -> "Vector":
        name = floating if one.is_float else whole
        return Vector(one.builder, getattr(one.builder, name)(one.value, one.with_kind(other)))

    return work


def _comparison(sign: str) -> Any:
    def work(one: "Vector", other: Any) -> "Vector":
        compare = one.builder.fcmp_ordered if one.is_float else one.builder.icmp_unsigned
        return Vector(one.builder, compare(sign, one.value, one.with_kind(other)))

    return work


class Vector:
    """Eight numbers of LLVM, or their bytes; integers have no sign."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value
        self.is_float = value.type.element in (F32, F64)

    def with_kind(self, number: Any) -> Any:
        """A vector, or a number in every lane, as LLVM knows it."""
        return number.value if isinstance(number, Vector) else _same(self.value.type, number)

    def __invert__(self) -> "Vector":
        return Vector(self.builder, self.builder.not_(self.value))

    __and__, __or__, __xor__ = _operator("and_"), _operator("or_"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("lshr")
    __add__, __sub__ = _operator("add", "fadd"), _operator("sub", "fsub")
    __mul__, __truediv__ = _operator("mul", "fmul"), _operator("udiv", "fdiv")
    __eq__, __ne__ = _comparison("=="), _comparison("!=")
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")


def _same(kind: Any, number: Any) -> Any:
    return ir.Constant(kind, [number] * kind.count)


class Compiled:
    """Lanes as vectors of LLVM."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def words(self, text: Any, marks: Any, i: Any, shift: Any, n_bytes: int) -> Vector:
        """Bytes of the text from so far beyond each mark on, as little-endian machines see them."""
        builder, kind = self.builder, ir.IntType(8 * n_bytes)
        value = ir.Constant(ir.VectorType(kind, LANES), ir.Undefined)
        for k in range(LANES):
            mark = builder.sext(builder.load(builder.gep(marks, [builder.add(i, I64(k))])), I64)
            if isinstance(shift, Vector):
                place = builder.add(mark, builder.extract_element(shift.value, I32(k)))
            else:
                place = builder.add(mark, I64(shift))
            pointer = builder.bitcast(builder.gep(text, [place]), kind.as_pointer())
            value = builder.insert_element(value, builder.load(pointer, align=1), I32(k))
        return Vector(builder, value)

    def _where(self, words: Vector, test: Callable[[Any], Any]) -> Vector:
        n_bytes = words.value.type.count * words.value.type.element.width // 8
        kind = ir.VectorType(I8, n_bytes)
        found = test(Vector(self.builder, self.builder.bitcast(words.value, kind))).value
        spread = self.builder.sext(found, kind)
        return Vector(self.builder, self.builder.bitcast(spread, words.value.type))

    def non_digits(self, words: Vector) -> Vector:
        """0xFF in place of each byte that is no digit, 0 of others."""
        return self._where(words, lambda byte: byte - 48 > 9)

    def white(self, words: Vector) -> Vector:
        """0xFF in place of each byte that is a blank or less, 0 of others."""
        return self._where(words, lambda byte: byte <= 32)

    def number(self, words: Vector) -> Any:
        """The number of as many digits as a word has bytes, of which only the lower half counts."""
        builder = self.builder
        n_fours = LANES * words.value.type.element.width // 32
        pairs, fours = ir.VectorType(I16, 2 * n_fours), ir.VectorType(I32, n_fours)
        mask = int.from_bytes(b"\x0f" * (words.value.type.element.width // 8), "little")
        x = Vector(builder, builder.bitcast((words & mask).value, pairs)) * PAIRS >> 8
        x = Vector(builder, builder.bitcast(x.value, fours)) * FOURS >> 16
        if n_fours == LANES:
            return x
        x = Vector(builder, builder.bitcast(x.value, words.value.type))
        x = (x & 0xFFFFFFFF) * 10_000 + (x >> 32)
        return Vector(builder, builder.trunc(x.value, ir.VectorType(I32, LANES)))

    def floats(self, lanes: Vector, n_bits: int) -> Vector:
        """Whole numbers of less than 31 bits, or floats, as floats."""
        kind = ir.VectorType(F32 if n_bits == 32 else F64, LANES)
        turn = self.builder.fptrunc if lanes.is_float else self.builder.sitofp
        return Vector(self.builder, turn(lanes.value, kind))

    def low_bits_of(self, lanes: Vector) -> Vector:
        """The lower 32 bits of floats."""
        small, large = ir.VectorType(I32, LANES), ir.VectorType(I64, LANES)
        if lanes.value.type.element == F32:
            return Vector(self.builder, self.builder.bitcast(lanes.value, small))
        bits = self.builder.bitcast(lanes.value, large)
        return Vector(self.builder, self.builder.trunc(bits, small))

    def count_ones(self, masks: Vector) -> Vector:
        """How many bits of each are 1."""
        return self._called("llvm.ctpop.v8i64", masks)

    def reversed_bytes(self, words: Vector) -> Vector:
        """Words with their bytes in reverse order."""
        return self._called("llvm.bswap.v8i32", words)

    def _called(self, name: str, lanes: Vector) -> Vector:
        """An LLVM intrinsic by its full name: llvmlite cannot mangle vector types."""
        kind, module = lanes.value.type, self.builder.module
        known = module.globals.get(name)
        function = known or ir.Function(module, ir.FunctionType(kind, [kind]), name)
        return Vector(self.builder, self.builder.call(function, [lanes.value]))

    def numbers(self, condition: Vector) -> Vector:
        """1 where the condition holds, 0 elsewhere, in 64 bits."""
        kind = ir.VectorType(I64, LANES)
        return Vector(self.builder, self.builder.zext(condition.value, kind))

    def select(self, condition: Vector, one: Vector, other: Any) -> Vector:
        """One where the condition holds, the other elsewhere."""
        return Vector(
            self.builder, self.builder.select(condition.value, one.value, one.with_kind(other))
        )

    def splat(self, number: Any) -> Vector:
        """A number of 64 bits as 32, in every lane."""
        small = self.builder.trunc(number, I32)
        kind = ir.VectorType(I32, LANES)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), small, I32(0))
        return Vector(self.builder, self.builder.shuffle_vector(one, one, _same(kind, 0)))

    def ones(self, n_bits: int) -> Vector:
        """1 in every lane, as a float."""
        kind = ir.VectorType(F32 if n_bits == 32 else F64, LANES)
        return Vector(self.builder, _same(kind, 1.0))

    def rises(self, numbers: Vector, before: Any) -> Vector:
        """Where a number with a sign is above that of the lane before; `before` is of the first."""
        kind = ir.VectorType(I32, LANES)
        lanes = ir.Constant(kind, [0, *range(LANES - 1)])
        earlier = self.builder.shuffle_vector(numbers.value, numbers.value, lanes)
        earlier = self.builder.insert_element(earlier, self.builder.trunc(before, I32), I32(0))
        return Vector(self.builder, self.builder.icmp_signed(">", numbers.value, earlier))

    def store(self, array: Any, i: Any, lanes: Vector) -> None:
        """Put lanes of 32 bits into an array."""
        kind = ir.VectorType(array.type.pointee, LANES)
        pointer = self.builder.bitcast(self.builder.gep(array, [i]), kind.as_pointer())
        self.builder.store(self.builder.bitcast(lanes.value, kind), pointer, align=4)

    def mask(self, *conditions: Vector) -> Any:
        """Lanes in which conditions hold as bits, eight for each condition."""
        out = I64(0)
        for k, condition in enumerate(conditions):
            bits = self.builder.bitcast(condition.value, ir.IntType(LANES))
            bits = self.builder.shl(self.builder.zext(bits, I64), I64(LANES * k))
            out = self.builder.or_(out, bits)
        return out


class Plain:
    """Lanes as NumPy arrays."""

    def words(self, text: Any, marks: Any, i: int, shift: Any, n_bytes: int) -> Any:
        starts = marks[i : i + LANES].astype(np.int64) + np.asarray(shift).astype(np.int64)
        assert starts.min() >= 0
        assert starts.max() + n_bytes <= text.size
        places = starts[:, None] + np.arange(n_bytes)
        return text[places].view(f"<u{n_bytes}")[:, 0]

    def _where(self, words: Any, test: Callable[[Any], Any]) -> Any:
        return np.where(test(words.view(np.uint8)), 0xFF, 0).astype(np.uint8).view(words.dtype)

    def non_digits(self, words: Any) -> Any:
        return self._where(words, lambda byte: byte - np.uint8(48) > 9)

    def white(self, words: Any) -> Any:
        return self._where(words, lambda byte: byte <= 32)

    def number(self, words: Any) -> Any:
        digits = words.view(np.uint8).reshape(LANES, -1) & 15
        powers = 10 ** np.arange(digits.shape[1], dtype=np.uint32)[::-1]
        return (digits * powers).sum(axis=1, dtype=np.uint32)

    def floats(self, lanes: Any, n_bits: int) -> Any:
        return lanes.astype(f"f{n_bits // 8}")

    def low_bits_of(self, lanes: Any) -> Any:
        return lanes.view(f"u{lanes.itemsize}").astype(np.uint32)

    def count_ones(self, masks: Any) -> Any:
        bits = np.unpackbits(masks.view(np.uint8)).reshape(LANES, -1)
        return bits.sum(axis=1).astype(np.uint64)

    def reversed_bytes(self, words: Any) -> Any:
        return words.byteswap()

    def numbers(self, condition: Any) -> Any:
        return condition.astype(np.uint64)

    def select(self, condition: Any, one: Any, other: Any) -> Any:
        return np.where(condition, one, np.asarray(other, one.dtype))

    def splat(self, number: int) -> Any:
        return np.full(LANES, number, np.uint32)

    def ones(self, n_bits: int) -> Any:
        return np.ones(LANES, f"f{n_bits // 8}")

    def rises(self, numbers: Any, before: int) -> Any:
        return np.diff(numbers.view(np.int32).astype(np.int64), prepend=before) > 0

    def store(self, array: Any, i: int, lanes: Any) -> None:
        assert i + LANES <= array.size
        array[i : i + LANES] = lanes.view(array.dtype)

    def mask(self, *conditions: Any) -> int:
        return int.from_bytes(np.packbits(conditions, bitorder="little").tobytes(), "little")


def on_lanes(result: Any, arguments: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    """A word of compiled code whose body takes `Compiled` or `Plain`, and then the arguments."""
    return primitive(
        result,
        arguments,
        lambda builder, *given: body(Compiled(builder), *given),
        lambda *given: body(Plain(), *given),
    )
