"""Bytes read eight at a time, as numba sees them. The caller guarantees that 8 bytes follow."""
# pyright: basic
# numba and llvmlite carry no types.

from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _load_word(typingctx, data, at):
    """uint64: the 8 bytes of the uint8 array ``data`` from index ``at``, least significant first, unaligned."""

    def build(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), build


@intrinsic
def _low_zero_bytes(typingctx, word):
    """int64: how many whole bytes of zero bits ``word`` has below its lowest set bit. ``word`` is not 0."""

    def build(context, builder, signature, args):
        bits = builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(bits, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), build


load_word = cast(Callable[[npt.NDArray[np.uint8], int], np.uint64], _load_word)
low_zero_bytes = cast(Callable[[np.uint64], int], _low_zero_bytes)
