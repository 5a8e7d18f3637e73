"""NVTX as a program has it: tables of functions that an injection library fills, called here through ctypes."""

import ctypes
from typing import Any

CORE, CORE2 = 1, 5
COUNT = 17


class Attributes(ctypes.Structure):
    """nvtxEventAttributes_t of version 2 or 3."""

    _fields_ = (
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_void_p),
    )


def attributes(message: bytes | str | int | None = None, **fields: Any) -> Attributes:
    """An event's attributes: bytes are ASCII, a str is wide, an int a registered string's handle."""
    made = Attributes(version=3, size=ctypes.sizeof(Attributes), **fields)
    if isinstance(message, int):
        made.message_type, made.message = 3, message
    elif message is not None:
        text = (
            ctypes.create_string_buffer(message)
            if isinstance(message, bytes)
            else ctypes.create_unicode_buffer(message)
        )
        made.message_type, made.message = (1 if isinstance(message, bytes) else 2), ctypes.addressof(text)
        made.kept = text
    return made


class Client:
    """The functions that the library at ``path`` put into the tables; those it left alone are None."""

    def __init__(self, path: str) -> None:
        self.slots = {module: (ctypes.c_void_p * COUNT)() for module in (CORE, CORE2)}
        self.tables = {module: (ctypes.c_void_p * COUNT)() for module in (CORE, CORE2)}
        for module, table in self.tables.items():
            for i in range(1, COUNT):
                table[i] = ctypes.addressof(self.slots[module]) + 8 * i
        get_type = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
        )
        self.get = get_type(self._module)
        self.callbacks = (ctypes.c_size_t * 2)(16, ctypes.cast(self.get, ctypes.c_void_p).value or 0)
        self.export = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(
            lambda number: ctypes.addressof(self.callbacks) if number == 1 else None
        )
        self.result = ctypes.CDLL(path).InitializeInjectionNvtx2(self.export)

    def _module(self, module: int, table: Any, count: Any) -> int:
        if module not in self.tables:
            return 0
        table[0] = ctypes.addressof(self.tables[module])
        count[0] = COUNT
        return 1

    def call(self, module: int, number: int, *values: Any, result: Any = None) -> Any:
        """Call function ``number`` of ``module``: ints are pointers or 64-bit numbers, bytes and str are texts."""
        kinds = {bytes: ctypes.c_char_p, str: ctypes.c_wchar_p, int: ctypes.c_uint64}
        types = [kinds.get(type(value), ctypes.c_void_p) for value in values]
        function = ctypes.CFUNCTYPE(result, *types)(self.slots[module][number])
        return function(*(ctypes.byref(value) if isinstance(value, Attributes) else value for value in values))

    def push(self, event: Attributes | bytes, domain: int | None = None) -> int:
        """Open a range on this thread. Returns its level."""
        if isinstance(event, bytes):
            return self.call(CORE, 9, event, result=ctypes.c_int)
        if domain is None:
            return self.call(CORE, 8, event, result=ctypes.c_int)
        return self.call(CORE2, 4, domain, event, result=ctypes.c_int)

    def pop(self, domain: int | None = None) -> int:
        """Close the innermost range of a domain on this thread."""
        return (
            self.call(CORE, 11, result=ctypes.c_int)
            if domain is None
            else self.call(CORE2, 5, domain, result=ctypes.c_int)
        )

    def mark(self, event: Attributes | bytes | str) -> None:
        """An instant."""
        self.call(CORE, {Attributes: 1, bytes: 2, str: 3}[type(event)], event)

    def domain(self, name: bytes | str) -> int:
        """A domain's handle."""
        return self.call(CORE2, 12 if isinstance(name, bytes) else 13, name, result=ctypes.c_void_p)

    def register(self, domain: int, text: bytes | str) -> int:
        """A string's handle."""
        return self.call(CORE2, 10 if isinstance(text, bytes) else 11, domain, text, result=ctypes.c_void_p)
