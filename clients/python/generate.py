#!/usr/bin/python3
"""Makes what the package takes from the protos: descriptors.bin, reasons.py and types.py; and aio.py of client.py.

It needs protoc. setup.py runs it where the protos are; the source distribution holds what it made.
"""

import keyword
import pathlib
import re
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "proto"
FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {FIELD.TYPE_STRING: ("str", '""'), FIELD.TYPE_BYTES: ("bytes", 'b""'), FIELD.TYPE_BOOL: ("bool", "False"),
           FIELD.TYPE_DOUBLE: ("float", "0.0"), FIELD.TYPE_FLOAT: ("float", "0.0"), FIELD.TYPE_ENUM: ("str", '""')}
WELL_KNOWN = {".google.protobuf.Timestamp": "Optional[datetime]", ".google.protobuf.Duration": "Optional[timedelta]",
              ".google.protobuf.Struct": "Any", ".google.protobuf.Value": "Any", ".google.protobuf.ListValue": "Any",
              ".strata.v1.Content": "Any"}
# What client.py calls and aio.py awaits.
AWAITED = re.compile(r"(?<!def )\bself\.(_run|_call|_write|_write_to|close|_connection\.call|_connection\.close|_items\.__next__)\(")
# Whose contents have the type of their collection.
GENERIC = {"Document", "Version"}


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def docstring(text):
    return " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''").rstrip('"')


def protoc(target, *options):
    files = sorted(str(file.relative_to(PROTOS)) for file in PROTOS.glob("strata/v1/*.proto"))
    subprocess.run(["protoc", f"-I{PROTOS}", f"-I{HERE / 'proto'}", "-I/usr/include", "--include_imports", *options,
                    f"--descriptor_set_out={target}", *files, "google/rpc/status.proto", "google/rpc/error_details.proto"],
                   check=True)


def comments(file):
    return {tuple(place.path): place.leading_comments for place in file.source_code_info.location}


def reasons(files):
    lines = ['"""A class for each reason. Made by generate.py from error_reason.proto."""', "", "from .errors import StrataError", ""]
    names = []
    for file in files:
        told = comments(file)
        for e, enum in enumerate(file.enum_type):
            if enum.name != "ErrorReason":
                continue
            for v, value in enumerate(enum.value):
                if value.number == 0:
                    continue
                reason = value.name[len("ERROR_REASON_"):]
                names.append((reason, camel(reason)))
                lines += ["", f"class {camel(reason)}(StrataError):",
                          f'    """{docstring(told.get((5, e, 2, v), reason))} """', ""]
    # Those that come with RetryInfo. Not all of Python's protobufs read options of options.proto, so the text is looked at.
    text = (PROTOS / "strata" / "v1" / "error_reason.proto").read_text(encoding="utf-8")
    retried = re.findall(r"ERROR_REASON_(\w+) = \d+ \[[^]]*\(retry_delay_ms\)", text)
    lines += ["", f"RETRIED = frozenset({retried})"]
    lines += ["", "BY_REASON = {"] + [f'    "{reason}": {name},' for reason, name in names] + ["}", ""]
    lines += ["__all__ = ["] + [f'    "{name}",' for _, name in names] + ["]", ""]
    return "\n".join(lines)


def types(files):
    lines = ['"""What the server answers, as dataclasses. Made by generate.py from the protos."""', "",
             "from dataclasses import dataclass, field", "from datetime import datetime, timedelta",
             "from typing import Any, Dict, Generic, List, Optional, TypeVar", "", 'T = TypeVar("T")', "", ""]
    table = []

    def emit(message, full, name, told, path):
        maps = {f"{full}.{nested.name}" for nested in message.nested_type if nested.options.map_entry}
        for n, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                emit(nested, f"{full}.{nested.name}", name + nested.name, told, path + (3, n))
        table.append((full.lstrip("."), name))
        base = "(Generic[T])" if name in GENERIC else ""
        lines.extend(["@dataclass", f"class {name}{base}:", f'    """{docstring(told.get(path, name))} """', ""])
        for f, member in enumerate(message.field):
            label = member.name + ("_" if keyword.iskeyword(member.name) else "")
            kind, default = SCALARS.get(member.type, ("int", "0"))
            if member.type == FIELD.TYPE_MESSAGE:
                default = "None"
                if member.type_name in maps:
                    kind, default = "Dict[str, str]", "field(default_factory=dict)"
                elif member.type_name in WELL_KNOWN:
                    kind = WELL_KNOWN[member.type_name]
                    if name in GENERIC and member.name == "content":
                        kind, default = "T", "None  # type: ignore[assignment]"
                else:
                    kind = '"' + "".join(member.type_name.split(".")[3:]) + '"'
                    if member.label != FIELD.LABEL_REPEATED:
                        kind = f"Optional[{kind}]"
            elif member.HasField("oneof_index"):
                kind, default = f"Optional[{kind}]", "None"
            if member.label == FIELD.LABEL_REPEATED and member.type_name not in maps:
                kind, default = f"List[{kind}]", "field(default_factory=list)"
            told_of = docstring(told.get(path + (2, f), ""))
            lines.append(f"    {label}: {kind} = {default}")
            if told_of:
                lines.append(f'    """{told_of} """')
        if not message.field:
            lines.append("    pass")
        lines.extend(["", ""])

    for file in files:
        if file.package == "strata.v1":
            for m, message in enumerate(file.message_type):
                if message.name != "Content":
                    emit(message, f".strata.v1.{message.name}", message.name, comments(file), (4, m))
    lines += ["BY_MESSAGE = {"] + [f'    "{full}": {name},' for full, name in table] + ["}", ""]
    return "\n".join(lines)


def asynchronous(source):
    """client.py for asyncio."""
    lines = source.split("\n")
    lines[0] = '"""The client of asyncio. Made by generate.py from client.py."""'
    for n, line in enumerate(lines):
        if AWAITED.search(line):
            lines[n] = AWAITED.sub(r"await \g<0>", line)
            start = n
            while not lines[start].startswith("    def "):
                start -= 1
                if lines[start].startswith("    async def "):
                    break
            lines[start] = lines[start].replace("    def ", "    async def ", 1)
    text = "\n".join(lines).replace("__iter__", "__aiter__").replace("__enter__", "__aenter__").replace("__exit__", "__aexit__")
    text = text.replace("__next__", "__anext__")
    text = text.replace("def __aenter__", "async def __aenter__").replace("async async", "async")
    text = re.sub(r"Iterator\b", "AsyncIterator", text).replace("from .driver import Connection, Tls", "from .aio_driver import Connection\nfrom .driver import Tls")
    text = text.replace("fn: Callable[[Optional[T]], Optional[T]]", "fn: Callable[[Optional[T]], Union[Optional[T], Awaitable[Optional[T]]]]")
    text = text.replace("each: Iterable[Union[Content, types.ApplyRequest]]", "each: Union[Iterable[Any], AsyncIterable[Any]]")
    return text.replace("import Any, Callable", "import Any, AsyncIterable, Awaitable, Callable")


def generate(target):
    target = pathlib.Path(target)
    protoc(target / "descriptors.bin")
    with tempfile.NamedTemporaryFile() as told:
        protoc(told.name, "--include_source_info")
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(told.name).read_bytes()).file
    (target / "aio.py").write_text(asynchronous((HERE / "strata_documents" / "client.py").read_text(encoding="utf-8")), encoding="utf-8")
    (target / "reasons.py").write_text(reasons(files), encoding="utf-8")
    (target / "types.py").write_text(types(files), encoding="utf-8")


if __name__ == "__main__":
    generate(sys.argv[1] if len(sys.argv) > 1 else HERE / "strata_documents")
