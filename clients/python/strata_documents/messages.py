"""The protos' messages, made at run time from the descriptor set in a pool of their own, and plain values from and to them."""

import base64
import dataclasses
import datetime
import decimal
import keyword
import pathlib
import uuid
from typing import Any, Callable, Dict, Optional, Tuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import bson, types
from .errors import InvalidValue

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_SECOND = datetime.timedelta(seconds=1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _load() -> Any:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString((pathlib.Path(__file__).parent / "descriptors.bin").read_bytes())
    for file in files.file:
        pool.Add(file)
    return pool, files


_POOL, _FILES = _load()
# protobuf before 4.22 has no GetMessageClass, protobuf 5 has no GetPrototype.
_class: Callable[[Any], Any] = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(_POOL).GetPrototype


def is_repeated(field: Any) -> bool:
    """Whether a field's descriptor is that of a list or a map."""
    repeated = getattr(field, "is_repeated", None)  # protobuf before 6.31 has it not, 7 has no label
    return bool(repeated) if repeated is not None else field.label == field.LABEL_REPEATED


def message(name: str) -> Any:
    """The class of a message of strata.v1, or of the full name."""
    return _class(_POOL.FindMessageTypeByName(name if "." in name and not name[0].isupper() else f"strata.v1.{name}"))


class Method:
    """One RPC: its path and its messages, and what the rules of repetition ask about it."""

    __slots__ = ("path", "name", "request", "response", "writes", "harmless")

    def __init__(self, path: str, name: str, request: Any, response: Any, options: descriptor_pb2.MethodOptions) -> None:
        self.path, self.name, self.request, self.response = path, name, request, response
        self.writes = options.idempotency_level != options.NO_SIDE_EFFECTS
        self.harmless = options.idempotency_level != options.IDEMPOTENCY_UNKNOWN


def _methods() -> Dict[str, Method]:
    found = {}
    for file in _FILES.file:
        for service in file.service:
            for method in service.method:
                found[method.name] = Method(f"/{file.package}.{service.name}/{method.name}", method.name,
                                            _class(_POOL.FindMessageTypeByName(method.input_type[1:])),
                                            _class(_POOL.FindMessageTypeByName(method.output_type[1:])), method.options)
    return found


METHODS = _methods()


# Times.

def set_time(target: Any, value: datetime.datetime) -> None:
    if not isinstance(value, datetime.datetime) or value.utcoffset() is None:
        raise InvalidValue("is no datetime with a time zone")
    seconds, rest = divmod(value - _EPOCH, _SECOND)
    target.seconds, target.nanos = seconds, rest // _MICROSECOND * 1000


def set_duration(target: Any, value: Any) -> None:
    if not isinstance(value, (datetime.timedelta, int, float)):
        raise InvalidValue("is neither a timedelta nor a number of seconds")
    micros = value // _MICROSECOND if isinstance(value, datetime.timedelta) else round(value * 1_000_000)
    sign = -1 if micros < 0 else 1
    target.seconds, target.nanos = sign * (abs(micros) // 1_000_000), sign * (abs(micros) % 1_000_000) * 1000
    target.SetInParent()


def time_of(value: Any) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def duration_of(value: Any) -> datetime.timedelta:
    return datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


# Extended JSON in google.protobuf.Value, for filters and operations.

def set_value(target: Any, value: Any, depth: int = 0) -> None:
    """Writes a plain value as Extended JSON. Raises InvalidValue as bson.encode."""
    if depth > bson.DEPTH_MAX + 8:
        raise InvalidValue("nests too deeply or holds itself")
    if value is None:
        target.null_value = 0
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        bson._text(value)
        target.string_value = value
    elif isinstance(value, dict):
        set_struct(target.struct_value, value, depth)
    elif isinstance(value, (list, tuple)):
        target.list_value.SetInParent()
        set_list(target.list_value, value, depth)
    elif isinstance(value, int) and type(value) is not bson.Int64 and abs(value) < 1 << 31:
        target.number_value = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        set_struct(target.struct_value, dict(bson._dataclass_items(value)), depth)
    else:
        set_struct(target.struct_value, _wrapped(value), depth)


def set_list(target: Any, value: Any, depth: int = 0) -> None:
    for n, member in enumerate(value):
        try:
            set_value(target.values.add(), member, depth + 1)
        except InvalidValue as error:
            raise error.within(n)


def set_struct(target: Any, value: Dict[str, Any], depth: int = 0) -> None:
    target.SetInParent()
    for name, member in value.items():
        if not isinstance(name, str):
            raise InvalidValue(f"is a name of type {type(name).__name__}, and names are str").within(name)
        try:
            bson._cstring(name)
            set_value(target.fields[name], member, depth + 1)
        except InvalidValue as error:
            raise error.within(name)


def _wrapped(value: Any) -> Dict[str, Any]:
    # What cannot be written is refused as BSON refuses it.
    code, data = bson._encode(value)
    if code == b"\x12":
        return {"$numberLong": str(int(value))}
    if code == b"\x10":
        return {"$numberInt": str(int(value))}
    if code == b"\x01":
        return {"$numberDouble": repr(float(value))}
    if code == b"\x09":
        return {"$date": {"$numberLong": str(int.from_bytes(data, "little", signed=True))}}
    if code == b"\x13":
        if isinstance(value, bson.Decimal128):
            raise InvalidValue("is a decimal that has no text")
        return {"$numberDecimal": str(value)}
    if code == b"\x07":
        return {"$oid": str(value)}
    if code == b"\x05":
        payload = value.data if isinstance(value, bson.Binary) else data[5:]
        return {"$binary": {"base64": base64.b64encode(payload).decode(), "subType": f"{data[4]:02x}"}}
    if code == b"\x0b":
        pattern, options = data.decode().split("\0")[:2]
        return {"$regularExpression": {"pattern": pattern, "options": options}}
    if code == b"\x11":
        return {"$timestamp": {"t": value.time, "i": value.increment}}
    return {"$minKey" if code == b"\xff" else "$maxKey": 1}


def _long(text: Any) -> int:
    value = int(text)
    return bson.Int64(value) if -0x80000000 <= value <= 0x7FFFFFFF else value


def _date(value: Any) -> Any:
    if isinstance(value, dict):
        value = int(value["$numberLong"])
    elif isinstance(value, str):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    try:
        return _EPOCH + datetime.timedelta(milliseconds=int(value))
    except OverflowError:
        return bson.FarDate(int(value))


def _binary(value: Any) -> Any:
    data, subtype = base64.b64decode(value["base64"]), int(value["subType"], 16)
    if subtype == 0:
        return data
    return uuid.UUID(bytes=data) if subtype == 4 and len(data) == 16 else bson.Binary(data, subtype)


WRAPPERS: Dict[str, Callable[[Any], Any]] = {
    "$numberInt": int, "$numberLong": _long, "$numberDouble": float, "$numberDecimal": decimal.Decimal, "$oid": bson.ObjectId,
    "$date": _date, "$binary": _binary, "$uuid": uuid.UUID, "$minKey": lambda _: bson.MinKey(), "$maxKey": lambda _: bson.MaxKey(),
    "$regularExpression": lambda value: bson.Regex(value["pattern"], value["options"]),
    "$timestamp": lambda value: bson.Timestamp(int(value["t"]), int(value["i"])),
}


def value_of(value: Any) -> Any:
    """The plain value of a google.protobuf.Value."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number == int(number) else number
    if kind == "struct_value":
        return struct_of(value.struct_value)
    if kind == "list_value":
        return [value_of(member) for member in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


def struct_of(value: Any) -> Any:
    members = {name: value_of(member) for name, member in sorted(value.fields.items())}
    if len(members) == 1:
        name, member = next(iter(members.items()))
        if name in WRAPPERS:
            return WRAPPERS[name](member)
    return members


# Answers. For each message a function is made of source at its first use: what a message holds is known, and need not be asked for
# anew with each answer.

def content_of(value: Any) -> Any:
    data = value.bson
    if data:
        return bson.decode(data)
    return struct_of(value.json) if value.HasField("json") else None


class _Names(Dict[int, str]):
    """The names of an enumeration's numbers; of one that is not known, the number."""

    def __missing__(self, number: int) -> str:
        return str(number)


_SPECIAL: Dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Duration": duration_of, "google.protobuf.Value": value_of, "google.protobuf.Struct": struct_of,
    "google.protobuf.ListValue": lambda value: [value_of(member) for member in value.values], "google.protobuf.Timestamp": time_of,
}
_SCOPE: Dict[str, Any] = {"content_of": content_of, "decode": bson.decode, "EPOCH": _EPOCH, "timedelta": datetime.timedelta}
_READERS: Dict[Any, Callable[[Any], Any]] = {}


def _reader_name(descriptor: Any) -> str:
    """The name in _SCOPE of what reads a message, which is made unless it is there."""
    name = "read_" + descriptor.full_name.replace(".", "_")
    if name not in _SCOPE:
        special = _SPECIAL.get(descriptor.full_name)
        # Set before it is made: messages may hold themselves.
        _SCOPE[name] = special
        if special is None:
            kind = _SCOPE[f"{name}_type"] = types.BY_MESSAGE[descriptor.full_name]
            members = [_member(field) for field in descriptor.fields]
            assert [name for name, _ in members] == [field.name for field in dataclasses.fields(kind)]
            # A dataclass takes its members in their order.
            exec(f"def {name}(m): return {name}_type({', '.join(source for _, source in members)})", _SCOPE)
    return name


def _member(field: Any) -> Tuple[str, str]:
    """A field's name in types.py, and the source of its value in a message `m`."""
    name = field.name
    value = f"m.{name}" if not keyword.iskeyword(name) else f'getattr(m, "{name}")'
    label = name + ("_" if keyword.iskeyword(name) else "")
    present = f'm.HasField("{name}")'
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return label, f"dict({value})"
    if field.enum_type is not None:
        names = "names_" + field.enum_type.full_name.replace(".", "_")
        if names not in _SCOPE:
            _SCOPE[names] = _Names({each.number: each.name if each.number else "" for each in field.enum_type.values})
        return label, f"[{names}[n] for n in {value}]" if is_repeated(field) else f"{names}[{value}]"
    if kind is None:
        if is_repeated(field):
            return label, f"list({value})"
        return label, value if field.containing_oneof is None else f"{value} if {present} else None"
    if is_repeated(field):
        return label, f"[{_reader_name(kind)}(each) for each in {value}]"
    # What is usual is looked at first: asking whether a field is there costs as much as reading it.
    if kind.full_name == "google.protobuf.Timestamp":
        return label, f"EPOCH + timedelta(0, t.seconds, t.nanos // 1000) if (t := {value}).seconds or {present} else None"
    if kind.full_name == "strata.v1.Content":
        return label, f"decode(t) if (t := {value}.bson) else content_of({value}) if {present} else None"
    return label, f"{_reader_name(kind)}({value}) if {present} else None"


def reader(kind: Any) -> Callable[[Any], Any]:
    """What makes the dataclass of types.py of a message of this class."""
    found = _READERS.get(kind)
    if found is None:
        found = _READERS[kind] = _SCOPE[_reader_name(kind.DESCRIPTOR)]
    return found


def plain(value: Any) -> Any:
    """The dataclass of types.py for a message."""
    return (_READERS.get(type(value)) or reader(type(value)))(value)


# Requests. For each message there is a table of what sets its fields, made at its first use.

def varint(number: int) -> bytes:
    """A number from 0 as protobuf writes it."""
    if number < 0x80:
        return _BYTES[number]
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_BYTES = tuple(bytes((n,)) for n in range(0x80))


def tag(kind: Any, field: str) -> bytes:
    """What stands before a field of a message's class on the wire."""
    found = kind.DESCRIPTOR.fields_by_name[field]
    sized = found.type in (found.TYPE_STRING, found.TYPE_BYTES, found.TYPE_MESSAGE)
    return varint(found.number << 3 | (2 if sized else 0))


Setter = Callable[[Any, Any], None]
# None: the field is set as it is.
_SETTERS: Dict[Any, Dict[str, Optional[Setter]]] = {}


def setters(kind: Any) -> Dict[str, Optional[Setter]]:
    """What sets the fields of a message of this class, by name."""
    found = _SETTERS.get(kind)
    if found is None:
        found = _SETTERS[kind] = {field.name: _setter(field) for field in kind.DESCRIPTOR.fields}
        for oneof in kind.DESCRIPTOR.oneofs:
            if len(oneof.fields) > 1:
                found.update({field.name: _exclusive(oneof.name, field.name, found[field.name]) for field in oneof.fields})
    return found


def _exclusive(oneof: str, name: str, setter: Optional[Setter]) -> Setter:
    """Sets a member of a oneof, which forgets another one without a word."""
    def exclusive(target: Any, value: Any) -> None:
        other = target.WhichOneof(oneof)
        if other is not None and other != name:
            raise ValueError(f"{name} cannot go together with {other}")
        if setter is not None:
            return setter(target, value)
        try:
            setattr(target, name, value)
        except (TypeError, ValueError) as error:
            raise unfit(name, value, error) from None
    return exclusive


def _setter(field: Any) -> Optional[Setter]:
    name, kind = field.name, field.message_type
    if kind is None:
        number = _number(field)
        if is_repeated(field):
            return lambda target, value: getattr(target, name).extend(map(number, _list(value, name)) if number else _list(value, name))
        return (lambda target, value: setattr(target, name, number(value))) if number else None
    if kind.GetOptions().map_entry:
        def mapped(target: Any, value: Any) -> None:
            try:
                getattr(target, name).update(value)
            except (TypeError, ValueError, AttributeError) as error:
                raise TypeError(f"{name} cannot be {repr(value)[:80]}, but a dict of str to str: {error}") from None
        return mapped
    made = _class(kind)
    one = _FROM_PLAIN.get(kind.full_name)
    if one is None:
        def one(target: Any, value: Any) -> None:
            target.SetInParent()
            fill(target, members(value))
    if is_repeated(field):
        def each(target: Any, value: Any) -> None:
            for member in value:
                added = getattr(target, name).add()
                added.CopyFrom(member) if isinstance(member, made) else one(added, member)
        return each

    def single(target: Any, value: Any) -> None:
        try:
            getattr(target, name).CopyFrom(value) if isinstance(value, made) else one(getattr(target, name), value)
        except InvalidValue as error:
            raise error.within(name) if one in (set_time, set_duration) else error
    return single


def _list(value: Any, name: str) -> Any:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} cannot be {value[:80]!r}: it is a list")
    return value


def _set_content(target: Any, value: Any) -> None:
    target.bson = bson.encode(value)


def _set_lease(target: Any, value: Any) -> None:
    if isinstance(value, types.Lease):
        # Its position is where it stands; that of a token moves it.
        value = {"name": value.name, "token": value.token}
    fill(target, members(value))


_FROM_PLAIN: Dict[str, Setter] = {
    "strata.v1.LeaseToken": _set_lease,
    "google.protobuf.Timestamp": set_time, "google.protobuf.Duration": set_duration, "google.protobuf.Struct": set_struct,
    "google.protobuf.FieldMask": lambda target, value: target.paths.extend(_list(value, "a mask")), "strata.v1.Content": _set_content,
}


def fill(target: Any, given: Dict[str, Any], by_name: Optional[Dict[str, Optional[Setter]]] = None) -> Any:
    """Sets a request's fields from plain values; None, () and, but where it says something, False leave one unset.

    `by_name`: setters beside those of the message.
    """
    if by_name is None:
        by_name = _SETTERS.get(type(target)) or setters(type(target))
    name, setter = "", None
    try:
        for name, value in given.items():
            if value is None or value is _NOTHING or value is False and name not in _FALSE_SAYS:
                continue
            setter = by_name.get(name, _NOTHING)
            if setter is None:
                setattr(target, name, value)
            elif setter is not _NOTHING:
                setter(target, value)
            else:
                raise TypeError(f"{target.DESCRIPTOR.name} has no {name}")
    except (TypeError, ValueError) as error:
        if setter is not None and not isinstance(error, UnicodeEncodeError):
            raise
        raise unfit(name, value, error) from None
    return target


def unfit(name: str, value: Any, error: Exception) -> Exception:
    """The error for a value that protobuf does not take: it does not say for which field."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidValue("is not UTF-8", f"/{name}")
    return type(error)(f"{name} cannot be {repr(value)[:80]}: {error}")


_NOTHING = ()
# Of all members that are true or false these alone are not false where they are unset.
_FALSE_SAYS = frozenset(("exists", "if_exists"))


def members(value: Any) -> Dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {name: member for name, member in vars(value).items() if member not in (None, "", [], {})}


def _number(field: Any) -> Optional[Callable[[Any], Any]]:
    """What finds the number of an enumeration's name; None: the field is no enumeration."""
    kind = field.enum_type
    if kind is None:
        return None
    prefix = kind.values[0].name[:-len("UNSPECIFIED")]
    numbers = {value.name: value.number for value in kind.values}
    # The short form: "deltas" for STRATEGY_DELTAS.
    numbers.update({name[len(prefix):]: number for name, number in numbers.items()})

    def number(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = numbers.get(value)
        if found is None:
            found = numbers.get(value.upper().replace("-", "_"))
        if found is None:
            raise ValueError(f"{field.name} is none of {', '.join(v.name for v in kind.values[1:])}: {value}")
        return found
    return number
