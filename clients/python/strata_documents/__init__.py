"""Client of Strata: versioned documents. `Client` is synchronous, `aio.Client` the same under asyncio."""

from typing import Any, Iterable

from . import reasons, types
from .bson import Binary, Decimal128, FarDate, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from .client import Client, Collection
from .driver import Tls
from .errors import InvalidValue, StrataError
from .operations import BatchGetAnswer, Change, Delivery, Written
from .reasons import *  # noqa: F401,F403
from .types import Document, LeaseToken, Version

def set(path: str, value: Any) -> Change:
    """Puts the value at the path, a JSON Pointer."""
    return Change(path, "set", value)


def unset(path: str) -> Change:
    return Change(path, "unset", None)


def increment(path: str, number: Any) -> Change:
    return Change(path, "increment", number)


def append(path: str, values: Iterable[Any]) -> Change:
    return Change(path, "append", list(values))


def append_missing(path: str, values: Iterable[Any]) -> Change:
    return Change(path, "append_missing", list(values))


def remove_all(path: str, values: Iterable[Any]) -> Change:
    return Change(path, "remove_all", list(values))


__all__ = ["BatchGetAnswer", "Binary", "Change", "Client", "Collection", "Decimal128", "Delivery", "Document", "FarDate", "Int64",
           "InvalidValue", "LeaseToken", "MaxKey", "MinKey", "ObjectId", "Regex", "StrataError", "Timestamp", "Tls", "Version", "Written",
           "append", "append_missing", "increment", "remove_all", "set", "types", "unset", *reasons.__all__]
