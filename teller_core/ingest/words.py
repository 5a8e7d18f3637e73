"""Bytes read eight at a time, as numba sees them. The caller guarantees that 8 bytes follow."""
# pyright: basic
# numba and llvmlite carry no types.

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def load_word(typingctx, data, at):
    """uint64: the 8 bytes of the uint8 array ``data`` from index ``at``, least significant first, unaligned."""

    def build(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), build


@intrinsic
def low_zero_bytes(typingctx, word):
    """int64: how many whole bytes of zero bits ``word`` has below its lowest set bit. ``word`` is not 0."""

    def build(context, builder, signature, args):
        bits = builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(bits, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), build
