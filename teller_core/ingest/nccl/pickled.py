"""Pickles of plain values, read by a machine that knows nothing else.

A pickle is a program for a stack machine. This one runs only the instructions that build numbers, texts, lists, tuples and
dicts: a file can import, call or construct nothing, whatever it says. It also bounds what a file may ask for, because few
bytes can ask for much: values made, instructions run, bytes of an integer. A key is a text or an integer: hashing tuples that
share their parts would take exponential time. Source of the instructions: the documentation of Python's ``pickletools``.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from teller_core.errors import FormatError, LimitError

MOST_VALUES = 4_000_000
"""Values that a pickle may make. A ring of 20,000 entries makes 700,000."""
MOST_STEPS = 8_000_000
"""Instructions that a pickle may run: a shared value costs one, and no memory. A ring of 20,000 entries runs 2 million."""
LONGEST_INTEGER = 16
"""Bytes of an integer: times and counts have 8."""
AGAIN = "Copy or record the file again"
NO_VALUES = "the pickle holds more than numbers, texts, lists and dicts"


class _Refused(Exception):
    """Why the machine stopped."""


@dataclass
class _Machine:
    data: bytes
    at: int = 0
    made: int = 0
    stack: list[object] = field(default_factory=list[object])
    marks: list[int] = field(default_factory=list[int])
    memo: dict[int, object] = field(default_factory=dict[int, object])


_Run = Callable[[_Machine], object]


def load_plain(data: bytes, name: str) -> object:
    """The value that the pickle ``data`` of the file ``name`` builds. Lists and dicts in it may be shared, or hold themselves.

    Errors: FormatError for a pickle that is cut, damaged, or of anything but plain values; LimitError for one that asks for
    too much.
    """
    machine = _Machine(data)
    try:
        return _run(machine)
    except OverflowError:
        raise LimitError(name, "the pickle asks for more than any recorder writes", AGAIN) from None
    except _Refused as refused:
        raise FormatError(name, str(refused), AGAIN) from None
    except (IndexError, KeyError, ValueError, struct.error):
        raise FormatError(name, "the pickle ends early or is broken", AGAIN) from None


def _run(machine: _Machine) -> object:
    data, instructions = machine.data, _INSTRUCTIONS
    for _ in range(MOST_STEPS):
        code = data[machine.at]
        machine.at += 1
        if code == _STOP:
            return machine.stack.pop()
        step = instructions.get(code)
        if step is None:
            raise _Refused(NO_VALUES)
        step(machine)
    raise OverflowError


def _bytes(machine: _Machine, size: int) -> bytes:
    begin = machine.at
    machine.at = begin + size
    if machine.at > len(machine.data):
        raise IndexError
    return machine.data[begin : machine.at]


def _number(machine: _Machine, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(_bytes(machine, size), "little", signed=signed)


def _push(machine: _Machine, value: object) -> None:
    machine.made += 1
    if machine.made > MOST_VALUES:
        raise OverflowError
    machine.stack.append(value)


def _from_mark(machine: _Machine) -> list[object]:
    """What was pushed since the last mark, taken off the stack."""
    begin = machine.marks.pop()
    values = machine.stack[begin:]
    del machine.stack[begin:]
    return values


def _constant(value: object) -> _Run:
    return lambda machine: machine.stack.append(value)


def _integer(size: int, *, signed: bool = False) -> _Run:
    return lambda machine: _push(machine, _number(machine, size, signed=signed))


def _long(size: int) -> _Run:
    def run(machine: _Machine) -> None:
        length = _number(machine, size)
        if length > LONGEST_INTEGER:
            raise OverflowError
        _push(machine, _number(machine, length, signed=True))

    return run


def _text(size: int) -> _Run:
    return lambda machine: _push(machine, _bytes(machine, _number(machine, size)).decode("utf-8", "surrogatepass"))


def _tuple(size: int) -> _Run:
    def run(machine: _Machine) -> None:
        if len(machine.stack) < size:
            raise IndexError
        values = tuple(machine.stack[len(machine.stack) - size :])
        del machine.stack[len(machine.stack) - size :]
        _push(machine, values)

    return run


def _append(machine: _Machine, values: list[object]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise ValueError
    cast("list[object]", target).extend(values)


def _set(machine: _Machine, values: list[object]) -> None:
    target, keys = machine.stack[-1], values[::2]
    if not isinstance(target, dict) or len(values) % 2:
        raise ValueError
    if not all(type(key) is str or type(key) is int for key in keys):
        raise _Refused("the pickle has keys that are neither text nor integers")
    cast("dict[object, object]", target).update(zip(keys, values[1::2], strict=True))


def _last(machine: _Machine, count: int) -> list[object]:
    return [machine.stack.pop() for _ in range(count)][::-1]


def _remember(size: int) -> _Run:
    def run(machine: _Machine) -> None:
        machine.memo[_number(machine, size)] = machine.stack[-1]

    return run


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _recall(size: int) -> _Run:
    return lambda machine: machine.stack.append(machine.memo[_number(machine, size)])


def _real(machine: _Machine) -> None:
    _push(machine, struct.unpack(">d", _bytes(machine, 8))[0])


_STOP = ord(".")
_INSTRUCTIONS: Mapping[int, _Run] = {
    0x80: lambda machine: _bytes(machine, 1),  # PROTO: the instructions say what they are
    0x95: lambda machine: _bytes(machine, 8),  # FRAME: a hint for reading in pieces
    ord("("): lambda machine: machine.marks.append(len(machine.stack)),
    ord("0"): lambda machine: machine.stack.pop(),
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("K"): _integer(1),
    ord("M"): _integer(2),
    ord("J"): _integer(4, signed=True),
    0x8A: _long(1),
    0x8B: _long(4),
    ord("G"): _real,
    ord("X"): _text(4),
    0x8C: _text(1),
    0x8D: _text(8),
    ord("]"): lambda machine: _push(machine, []),
    ord("}"): lambda machine: _push(machine, {}),
    ord(")"): _constant(()),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("t"): lambda machine: _push(machine, tuple(_from_mark(machine))),
    ord("l"): lambda machine: _push(machine, _from_mark(machine)),
    ord("a"): lambda machine: _append(machine, _last(machine, 1)),
    ord("e"): lambda machine: _append(machine, _from_mark(machine)),
    ord("s"): lambda machine: _set(machine, _last(machine, 2)),
    ord("u"): lambda machine: _set(machine, _from_mark(machine)),
    ord("q"): _remember(1),
    ord("r"): _remember(4),
    0x94: _memoize,
    ord("h"): _recall(1),
    ord("j"): _recall(4),
}
"""By code. What imports, calls or constructs is not among them."""
