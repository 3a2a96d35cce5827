"""BSON for the contents of documents: plain Python values to bytes and back.

What was read and is written again has the same bytes. A stored int64 that would fit an int32 is read as Int64, a subclass of int.
"""

import dataclasses
import datetime
import decimal
import re
import struct
import uuid
from typing import Any, Callable, Dict, Tuple

from .errors import InvalidValue

DEPTH_MAX = 24
SIZE_MAX = 2 * 1024 * 1024

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")
_PAIR = struct.Struct("<II")
_PACK_INT32, _PACK_INT64, _PACK_DOUBLE = _INT32.pack, _INT64.pack, _DOUBLE.pack
_INDICES = tuple(str(n).encode() + b"\0" for n in range(1000))


class Int64(int):
    """An integer that is stored in 64 bits even where 32 would do."""

    __slots__ = ()


class _Value:
    __slots__: Tuple[str, ...] = ()

    def _members(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._members() == self._members()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._members()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(member) for member in self._members())})"


class ObjectId(_Value):
    """MongoDB's 12-byte identifier, of its bytes or 24 hexadecimal digits."""

    __slots__ = ("binary",)

    def __init__(self, value: Any) -> None:
        self.binary = bytes.fromhex(value) if isinstance(value, str) else bytes(value)
        if len(self.binary) != 12:
            raise ValueError("an ObjectId has 12 bytes")

    def __str__(self) -> str:
        return self.binary.hex()


class Binary(_Value):
    """Bytes of a subtype other than 0 (bytes) and 4 (uuid.UUID)."""

    __slots__ = ("data", "subtype")

    def __init__(self, data: bytes, subtype: int = 0) -> None:
        self.data = bytes(data)
        self.subtype = subtype
        if not 0 <= subtype <= 255:
            raise ValueError("a subtype is 0 to 255")


class Regex(_Value):
    """A regular expression as it is stored."""

    __slots__ = ("pattern", "options")

    def __init__(self, pattern: str, options: str = "") -> None:
        self.pattern = pattern
        self.options = options


class Timestamp(_Value):
    """MongoDB's internal timestamp: seconds and a counter."""

    __slots__ = ("time", "increment")

    def __init__(self, time: int, increment: int) -> None:
        self.time = time
        self.increment = increment
        if not (0 <= time < 1 << 32 and 0 <= increment < 1 << 32):
            raise ValueError("the members of a Timestamp are 0 to 2^32 - 1")


class MinKey(_Value):
    """What sorts before all else."""

    __slots__ = ()


class MaxKey(_Value):
    """The key that sorts after all others."""

    __slots__ = ()


class FarDate(_Value):
    """A time outside the years 1 to 9999, in milliseconds since 1970, which datetime does not hold."""

    __slots__ = ("milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds


class Decimal128(_Value):
    """A stored decimal whose bytes decimal.Decimal would not give back; other decimals are read as decimal.Decimal."""

    __slots__ = ("binary",)

    def __init__(self, binary: bytes) -> None:
        self.binary = bytes(binary)
        if len(self.binary) != 16:
            raise ValueError("a Decimal128 has 16 bytes")


def _decimal_bytes(value: decimal.Decimal) -> bytes:
    if not value.is_finite():
        raise InvalidValue("is NaN or infinite")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int("".join(map(str, digits)) or "0")
    # The same value with another exponent where the own one is out of reach.
    if coefficient == 0:
        exponent = min(max(exponent, -6176), 6111)
    while exponent > 6111 and coefficient < 10 ** 33 and coefficient:
        coefficient, exponent = coefficient * 10, exponent - 1
    while (exponent < -6176 or coefficient >= 10 ** 34) and coefficient % 10 == 0 and coefficient:
        coefficient, exponent = coefficient // 10, exponent + 1
    if coefficient >= 10 ** 34 or not -6176 <= exponent <= 6111:
        raise InvalidValue("is a decimal of more than 34 digits or beyond the exponents of Decimal128")
    return (coefficient | (exponent + 6176) << 113 | sign << 127).to_bytes(16, "little")


def _decimal_value(data: bytes) -> Any:
    number = int.from_bytes(data, "little")
    if number >> 125 & 3 != 3:
        coefficient = number & (1 << 113) - 1
        if coefficient < 10 ** 34:
            exponent = (number >> 113 & 0x3FFF) - 6176
            return decimal.Decimal((number >> 127, tuple(map(int, str(coefficient))), exponent))
    return Decimal128(data)


def _text(value: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidValue("is not UTF-8") from None


def _cstring(value: str) -> bytes:
    data = _text(value)
    if b"\0" in data:
        raise InvalidValue("has a zero byte")
    return data + b"\0"


# Names are few, and come again in each document: those that were seen are kept as they are sent, and as they are read.
_NAMES_MAX = 4096
_NAME_BYTES_MAX = 64
_SENT_NAMES: Dict[str, bytes] = {}
_READ_NAMES: Dict[bytes, str] = {}


def _name(name: Any) -> bytes:
    if not isinstance(name, str):
        raise InvalidValue(f"is a name of type {type(name).__name__}, and names are str")
    data = name.encode("utf-8")
    if b"\0" in data:
        raise InvalidValue("is a name with a zero byte")
    data += b"\0"
    if len(data) <= _NAME_BYTES_MAX and len(_SENT_NAMES) < _NAMES_MAX:
        _SENT_NAMES[str(name)] = data
    return data


def _document(items: Any, depth: int) -> bytes:
    """The document of these names and values."""
    if depth >= DEPTH_MAX:
        raise InvalidValue(f"nests deeper than {DEPTH_MAX}")
    parts = []
    names, pack_int32 = _SENT_NAMES, _PACK_INT32
    try:
        for name, member in items:
            key = names.get(name) or _name(name)
            kind = type(member)
            if kind is str:
                data = member.encode("utf-8")
                parts += (b"\x02", key, pack_int32(len(data) + 1), data, b"\0")
            elif kind is int and -0x80000000 <= member <= 0x7FFFFFFF:
                parts += (b"\x10", key, pack_int32(member))
            elif kind is dict:
                parts += (b"\x03", key, _document(member.items(), depth + 1))
            elif kind is list:
                parts += (b"\x04", key, _array(member, depth + 1))
            else:
                code, data = (_ENCODERS.get(kind) or _encoder(kind))(member, depth)
                parts += (code, key, data)
    except UnicodeEncodeError:
        raise InvalidValue("is not UTF-8").within(str(name).encode("utf-8", "replace").decode()) from None
    except InvalidValue as error:
        raise error.within(name)
    body = b"".join(parts)
    return pack_int32(len(body) + 5) + body + b"\0"


def _array(value: Any, depth: int) -> bytes:
    if depth >= DEPTH_MAX:
        raise InvalidValue(f"nests deeper than {DEPTH_MAX}")
    parts = []
    n = 0
    try:
        for n, member in enumerate(value):
            kind = type(member)
            code, data = (_ENCODERS.get(kind) or _encoder(kind))(member, depth)
            parts += (code, _INDICES[n] if n < 1000 else b"%d\0" % n, data)
    except InvalidValue as error:
        raise error.within(n)
    body = b"".join(parts)
    return _PACK_INT32(len(body) + 5) + body + b"\0"


def _encode(value: Any) -> Tuple[bytes, bytes]:
    """A value's type and bytes."""
    kind = type(value)
    return (_ENCODERS.get(kind) or _encoder(kind))(value, 0)


# The same by a value's class; `depth` is that of what holds it.

def _encode_str(value: str, depth: int) -> Tuple[bytes, bytes]:
    data = _text(value)
    return b"\x02", _PACK_INT32(len(data) + 1) + data + b"\0"


def _encode_int(value: int, depth: int) -> Tuple[bytes, bytes]:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return b"\x10", _PACK_INT32(value)
    return _encode_int64(value, depth)


def _encode_int64(value: int, depth: int) -> Tuple[bytes, bytes]:
    if not -1 << 63 <= value < 1 << 63:
        raise InvalidValue("is an integer beyond 64 bits")
    return b"\x12", _PACK_INT64(value)


def _encode_float(value: float, depth: int) -> Tuple[bytes, bytes]:
    if value - value != 0:
        raise InvalidValue("is NaN or infinite")
    return b"\x01", _PACK_DOUBLE(value)


def _encode_bytes(value: Any, depth: int) -> Tuple[bytes, bytes]:
    data = bytes(value)
    return b"\x05", _PACK_INT32(len(data)) + b"\0" + data


def _encode_datetime(value: datetime.datetime, depth: int) -> Tuple[bytes, bytes]:
    if value.utcoffset() is None:
        raise InvalidValue("is a datetime without a time zone; give it one, such as tzinfo=timezone.utc")
    if value.microsecond % 1000:
        raise InvalidValue("has microseconds, which a BSON date does not keep; drop them: "
                           "t.replace(microsecond=t.microsecond // 1000 * 1000)")
    return b"\x09", _PACK_INT64((value - _EPOCH) // _MILLISECOND)


def _encode_binary(value: Binary, depth: int) -> Tuple[bytes, bytes]:
    data = value.data
    if value.subtype == 2:
        data = _PACK_INT32(len(data)) + data
    return b"\x05", _PACK_INT32(len(data)) + bytes((value.subtype,)) + data


def _encode_pattern(value: "re.Pattern[Any]", depth: int) -> Tuple[bytes, bytes]:
    if not isinstance(value.pattern, str):
        raise InvalidValue("is a pattern of bytes")
    if value.flags & re.A:
        raise InvalidValue("has the flag re.ASCII, which BSON does not keep")
    options = "".join(letter for letter, flag in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X)) if value.flags & flag)
    return b"\x0b", _cstring(value.pattern) + _cstring(options)


def _encode_dataclass(value: Any, depth: int) -> Tuple[bytes, bytes]:
    return b"\x03", _document(_dataclass_items(value), depth + 1)


def _refuse(value: Any, depth: int) -> Tuple[bytes, bytes]:
    instead = "; a datetime with a time zone is a time" if isinstance(value, datetime.date) else \
        "; a list keeps an order" if isinstance(value, (set, frozenset)) else ""
    raise InvalidValue(f"is of type {type(value).__name__}, which BSON does not have{instead}")


Encoder = Callable[[Any, int], Tuple[bytes, bytes]]
_ENCODERS: Dict[Any, Encoder] = {
    str: _encode_str, bool: lambda value, depth: (b"\x08", b"\x01" if value else b"\0"), int: _encode_int, Int64: _encode_int64,
    float: _encode_float, type(None): lambda value, depth: (b"\x0a", b""),
    dict: lambda value, depth: (b"\x03", _document(value.items(), depth + 1)),
    list: lambda value, depth: (b"\x04", _array(value, depth + 1)), tuple: lambda value, depth: (b"\x04", _array(value, depth + 1)),
    bytes: _encode_bytes, bytearray: _encode_bytes, memoryview: _encode_bytes, datetime.datetime: _encode_datetime,
    decimal.Decimal: lambda value, depth: (b"\x13", _decimal_bytes(value)),
    uuid.UUID: lambda value, depth: (b"\x05", b"\x10\0\0\0\x04" + value.bytes), re.Pattern: _encode_pattern,
    ObjectId: lambda value, depth: (b"\x07", value.binary), Binary: _encode_binary,
    Regex: lambda value, depth: (b"\x0b", _cstring(value.pattern) + _cstring(value.options)),
    Timestamp: lambda value, depth: (b"\x11", _PAIR.pack(value.increment, value.time)),
    Decimal128: lambda value, depth: (b"\x13", value.binary), FarDate: lambda value, depth: (b"\x09", _PACK_INT64(value.milliseconds)),
    MinKey: lambda value, depth: (b"\xff", b""), MaxKey: lambda value, depth: (b"\x7f", b""),
}
_BASES = tuple(_ENCODERS)
# Of a program that makes classes without end, no more are kept.
_CLASSES_MAX = 4096


def _encoder(kind: Any) -> Encoder:
    """What encodes values of a class that is seen for the first time."""
    found = _encode_dataclass if dataclasses.is_dataclass(kind) else next(
        (_ENCODERS[base] for base in _BASES if issubclass(kind, base)), _refuse)
    if len(_ENCODERS) < _CLASSES_MAX:
        _ENCODERS[kind] = found
    return found


_FIELDS: Dict[Any, Tuple[str, ...]] = {}


def _dataclass_items(value: Any) -> Any:
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(field.name for field in dataclasses.fields(kind))
        if len(_FIELDS) < _CLASSES_MAX:
            _FIELDS[kind] = names
    return [(name, getattr(value, name)) for name in names]


def _children(value: Any) -> Any:
    """The names and values that a container holds, and nothing of what is none."""
    if isinstance(value, dict):
        return value.items()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass_items(value)
    return enumerate(value) if isinstance(value, (list, tuple)) else ()


def _cycle(value: Any, above: Tuple[int, ...]) -> str:
    """The path of the first container that holds itself, or nothing."""
    if len(above) > DEPTH_MAX:
        return ""
    above = above + (id(value),)
    for name, member in _children(value):
        if id(member) in above:
            return InvalidValue("").within(name).path
        found = _cycle(member, above)
        if found:
            return InvalidValue("", found).within(name).path
    return ""


def encode(value: Any) -> bytes:
    """The bytes of a document, which is a dict or a dataclass. Raises InvalidValue naming the path of what has no BSON."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = _dataclass_items(value)
    else:
        raise InvalidValue(f"is of type {type(value).__name__}, and a document is a dict or a dataclass")
    try:
        data = _document(items, 0)
    except InvalidValue as error:
        if error.problem.startswith("nests"):
            found = _cycle(value, ())
            if found:
                raise InvalidValue("holds itself", found) from None
        raise
    if len(data) > SIZE_MAX:
        raise InvalidValue(f"has {len(data)} bytes as BSON, and a document has at most {SIZE_MAX}", _largest(value))
    return data


def _largest(value: Any) -> str:
    """The path of the innermost member that is too large by itself; nothing if only all together are."""
    for name, member in _children(value):
        if len(_encode(member)[1]) > SIZE_MAX:
            return InvalidValue("", _largest(member)).within(name).path
    return ""


def decode(data: bytes) -> Dict[str, Any]:
    """The document of these bytes. Raises ValueError for bytes that are no BSON."""
    try:
        value, end = _read(data, 0, False, 0)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"not BSON: {error}") from None
    if end != len(data):
        raise ValueError("not BSON: there are bytes after it")
    return value


def _read_name(data: bytes) -> str:
    name = data.decode("utf-8")
    if len(data) < _NAME_BYTES_MAX and len(_READ_NAMES) < _NAMES_MAX:
        _READ_NAMES[data] = name
    return name


def _read(data: bytes, at: int, array: bool, depth: int) -> Tuple[Any, int]:
    # The server takes 24 levels; 100 keeps a damaged answer from exhausting the stack.
    if depth > 100:
        raise ValueError("not BSON: it nests too deeply")
    end = at + _INT32.unpack_from(data, at)[0] - 1
    if end >= len(data) or end < at + 4 or data[end]:
        raise ValueError("not BSON: a length is wrong")
    at += 4
    members: Dict[str, Any] = {}
    items = []
    unpack_int32 = _INT32.unpack_from
    while at < end:
        code = data[at]
        zero = data.index(b"\0", at + 1)
        name = data[at + 1:zero]
        at = zero + 1
        value: Any
        if code == 0x02:
            length = unpack_int32(data, at)[0]
            at += 4 + length
            if length < 1 or at > end or data[at - 1]:
                raise ValueError("not BSON: a text is cut off")
            value = data[at - length:at - 1].decode("utf-8")
        elif code == 0x10:
            value = unpack_int32(data, at)[0]
            at += 4
        elif code == 0x12:
            value = _INT64.unpack_from(data, at)[0]
            if -0x80000000 <= value <= 0x7FFFFFFF:
                value = Int64(value)
            at += 8
        elif code == 0x01:
            value = _DOUBLE.unpack_from(data, at)[0]
            at += 8
        elif code == 0x03:
            value, at = _read(data, at, False, depth + 1)
        elif code == 0x04:
            value, at = _read(data, at, True, depth + 1)
        elif code == 0x08:
            value = data[at] == 1
            at += 1
        elif code == 0x0A:
            value = None
        elif code == 0x09:
            milliseconds = _INT64.unpack_from(data, at)[0]
            at += 8
            try:
                value = _EPOCH + datetime.timedelta(milliseconds=milliseconds)
            except OverflowError:
                value = FarDate(milliseconds)
        elif code == 0x05:
            length = _INT32.unpack_from(data, at)[0]
            subtype = data[at + 4]
            at += 5 + length
            if length < 0 or at > end:
                raise ValueError("not BSON: binary is cut off")
            value = data[at - length:at]
            if subtype == 4 and length == 16:
                value = uuid.UUID(bytes=value)
            elif subtype == 2:
                value = Binary(value[4:], 2)
            elif subtype:
                value = Binary(value, subtype)
        elif code == 0x07:
            value = ObjectId(data[at:at + 12])
            at += 12
        elif code == 0x13:
            value = _decimal_value(data[at:at + 16])
            at += 16
        elif code == 0x0B:
            zero = data.index(b"\0", at)
            last = data.index(b"\0", zero + 1)
            value = Regex(data[at:zero].decode("utf-8"), data[zero + 1:last].decode("utf-8"))
            at = last + 1
        elif code == 0x11:
            increment, seconds = _PAIR.unpack_from(data, at)
            value = Timestamp(seconds, increment)
            at += 8
        elif code == 0xFF:
            value = MinKey()
        elif code == 0x7F:
            value = MaxKey()
        else:
            raise ValueError(f"not BSON: type {code:#x} is unknown")
        if array:
            items.append(value)
        else:
            members[_READ_NAMES.get(name) or _read_name(name)] = value
    if at != end:
        raise ValueError("not BSON: a member is cut off")
    return (items if array else members), end + 1
