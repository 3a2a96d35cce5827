"""Every operation of the surface as a generator for core's drivers: the request it makes, and what its answer means."""

import collections
import dataclasses
import datetime
import logging
import random
import threading
import time
import typing
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Tuple

from . import messages, reasons, types
from .bson import encode
from .core import (APPLY_WINDOW, CLOSE_PATIENCE, NOTHING, PAUSE_FIRST, PAUSE_MODIFY_MAX, RELEASE_PATIENCE, Attempts, Failure, Invoke, Items, Next, Open,
                   OpenDuplex, Operation, Read, Settings, Sleep, Take, failure_of_part, new_request_id, pause_before)
from .errors import InvalidValue, StrataError

CHANGE = ("actor", "on_behalf_of", "reason", "labels")


@dataclasses.dataclass
class Written(typing.Generic[types.T]):
    """What a write did."""

    document: types.Document[types.T]
    attempts: int = 0
    """How often the server tried to commit; 0 if nothing had to be written."""
    changed: bool = False
    """False: the result equals what was there, and nothing was written."""
    replayed: bool = False
    """True: an earlier call with this request id did it."""
    stale: bool = False
    """True: the precondition `newer` found the document as new or newer; nothing was written."""
    commit_position: int = 0
    """Position in the store-wide order of commits. 0: nothing was written, or the engine numbers none."""


@dataclasses.dataclass
class BatchGetAnswer(typing.Generic[types.T]):
    """The documents in the order of the ids, and the ids of those that are not there."""

    documents: List[types.Document[types.T]]
    missing_ids: List[str]


@dataclasses.dataclass(frozen=True)
class Change:
    """One change of one member; made by set, unset, increment, append, append_missing and remove_all."""

    path: str
    kind: str
    value: Any


# Dataclasses as contents: bson.encode takes them as they are.

_HINTS: Dict[Any, Dict[str, Any]] = {}


def from_content(of: Any, value: Any) -> Any:
    """The stored content as the dataclass `of`; members that it does not have are left out."""
    if value is None or of is None:
        return value
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if origin is typing.Union:
        inner = [argument for argument in arguments if argument is not type(None)]
        return from_content(inner[0], value) if len(inner) == 1 else value
    if isinstance(value, list) and origin is list:
        return [from_content(arguments[0], member) for member in value]
    if isinstance(value, dict):
        if origin is dict:
            return {name: from_content(arguments[1], member) for name, member in value.items()}
        if dataclasses.is_dataclass(of):
            hints = _HINTS.get(of)
            if hints is None:
                hints = _HINTS[of] = typing.get_type_hints(of)
            return of(**{field.name: from_content(hints[field.name], value[field.name])
                         for field in dataclasses.fields(of) if field.init and field.name in value})
    return value


# Requests: what sets the fields of each, and the arguments that are flat where the protos have parts.

def _ignore(request: Any, value: Any) -> None:
    pass


def _of_change(name: str, set_member: Optional[messages.Setter]) -> messages.Setter:
    if set_member is not None:
        return lambda request, value: set_member(request.change, value)
    return lambda request, value: _set(request.change, name, value, name)


def _set(target: Any, field: str, value: Any, name: str) -> None:
    """Sets the field by what the argument `name` says."""
    try:
        setattr(target, field, value)
    except (TypeError, ValueError) as error:
        raise messages.unfit(name, value, error) from None


def _precondition(set_condition: messages.Setter) -> messages.Setter:
    def condition(request: Any, value: Any) -> None:
        if request.HasField("precondition"):
            raise ValueError(f"at most one of {', '.join(_PRECONDITIONS)}")
        set_condition(request.precondition, value)
    return condition


def _set_newer(target: Any, value: Any) -> None:
    try:
        target.newer.path, target.newer.value = value
    except (TypeError, ValueError) as error:
        raise TypeError(f"newer is a path and a number, not {repr(value)[:80]}: {error}") from None


_PRECONDITIONS: Dict[str, messages.Setter] = {
    "if_version": lambda target, value: _set(target, "version", value, "if_version"),
    "if_exists": lambda target, value: _set(target, "exists", value, "if_exists"),
    "if_matches": lambda target, value: messages.set_struct(target.filter, value), "newer": _set_newer,
}


def _replace(request: Any, value: Any) -> None:
    if request.HasField("patch"):
        raise ValueError("replace goes without merge and operations")
    request.replace.bson = encode(value)


def _patch(request: Any) -> Any:
    if request.HasField("replace"):
        raise ValueError("replace goes without merge and operations")
    return request.patch


def _merge(request: Any, value: Any) -> None:
    _patch(request).merge.bson = encode(value)


def _operations(request: Any, value: Any) -> None:
    if isinstance(value, (Change, str)):
        raise TypeError(f"operations cannot be {repr(value)[:80]}: it is a list")
    operations = [_operation(each) for each in value]
    if operations:
        _patch(request).operations.extend(operations)


def _operation(change: Change) -> Any:
    if not isinstance(change, Change):
        raise TypeError(f"an operation is made by set, unset, increment, append, append_missing or remove_all, and {repr(change)[:80]} is not")
    message = messages.message("Operation")()
    _set(message, "path", change.path, "path")
    try:
        if change.kind in ("set", "increment"):
            messages.set_value(getattr(message, change.kind), change.value)
        elif change.kind == "unset":
            message.unset = True
        else:
            getattr(message, change.kind).SetInParent()
            messages.set_list(getattr(message, change.kind), change.value)
    except InvalidValue as error:
        error.path = change.path + error.path
        raise
    return message


# What the wire's parts of a request are made of, where they are plain. Each raises AttributeError for a value of another type.

def _text_part(tag: bytes) -> Callable[[Any], bytes]:
    def part(value: Any) -> bytes:
        data = value.encode("utf-8")
        return tag + messages.varint(len(data)) + data
    return part


def _content_part(tag: bytes) -> Callable[[Any], bytes]:
    inner = messages.tag(messages.message("Content"), "bson")

    def part(value: Any) -> bytes:
        data = encode(value)
        size = inner + messages.varint(len(data))
        return b"".join((tag, messages.varint(len(size) + len(data)), size, data))
    return part


class _Request:
    """How the request of a method is made of arguments."""

    __slots__ = ("method", "kind", "setters", "actor", "identified", "encoded", "_parts", "_change_parts", "_change", "_end", "_request_id")

    def __init__(self, method: messages.Method) -> None:
        fields = method.request.DESCRIPTOR.fields_by_name
        self.method, self.kind = method, method.request
        self.setters = dict(messages.setters(method.request), self=_ignore)
        self.actor = "change" in fields
        if self.actor:
            of_change = messages.setters(messages.message("ChangeInfo"))
            self.setters.update({name: _of_change(name, of_change[name]) for name in CHANGE})
        if "precondition" in fields:
            self.setters.update({name: _precondition(setter) for name, setter in _PRECONDITIONS.items()})
        if "replace" in fields:
            self.setters.update(replace=_replace, merge=_merge, operations=_operations)
        # That of a read is what it asks for.
        self.identified = method.writes and "request_id" in fields
        self.encoded = "encoding" in fields
        self._parts = {name: _text_part(messages.tag(self.kind, name)) for name in ("id", "request_id") if name in fields}
        self._parts.update({name: _content_part(messages.tag(self.kind, name)) for name in ("content", "replace") if name in fields})
        self._parts["self"] = lambda value: b""
        self._change_parts = {}
        if self.actor:
            change = messages.message("ChangeInfo")
            self._change = messages.tag(self.kind, "change")
            self._change_parts = {name: _text_part(messages.tag(change, name)) for name in ("actor", "on_behalf_of", "reason")}
        self._end = messages.tag(self.kind, "encoding") + b"\2" if self.encoded else b""
        self._request_id = self._parts.get("request_id") if self.identified else None

    def encode(self, settings: Settings, collection: bytes, members: Dict[str, Any]) -> Optional[Tuple[bytes, Optional[str]]]:
        """What `make` makes, as the bytes that are sent, and its request id; None where an argument is not of the usual ones.

        Such a request needs no message, which would cost more to fill and to write than all else that the client does for a call.
        `collection`: that field as it is sent.
        """
        parts, change = [collection], b""
        known, of_change = self._parts, self._change_parts
        actor = settings.actor
        request_id = None
        try:
            for name, value in members.items():
                if value is None or value is _NOTHING or value is False and name != "if_exists":
                    continue
                if name in known:
                    parts.append(known[name](value))
                    if name == "request_id":
                        request_id = value
                elif name in of_change:
                    change += of_change[name](value)
                    if name == "actor":
                        actor = None
                else:
                    return None
            if of_change:
                if actor is not None:
                    change += of_change["actor"](actor)
                if change:
                    parts += (self._change, messages.varint(len(change)), change)
            if self._request_id is not None and not request_id:
                request_id = new_request_id()
                parts.append(self._request_id(request_id))
        except (AttributeError, UnicodeEncodeError):
            # That which makes messages knows how to name what is wrong.
            return None
        parts.append(self._end)
        return b"".join(parts), request_id

    def make(self, settings: Settings, members: Dict[str, Any], **fields: Any) -> Any:
        """The request with these fields, and those that the arguments say. Its actor is the client's and its request id a new one unless given."""
        request = self.kind(**fields)
        if self.encoded:
            request.encoding = 2
        messages.fill(request, members, self.setters)
        if self.actor and settings.actor is not None and members.get("actor") is None:
            request.change.actor = settings.actor
        if self.identified and not members.get("request_id"):
            request.request_id = new_request_id()
        return request


class _Requests(Dict[str, _Request]):
    """By the name of the method; each is made at its first use."""

    def __missing__(self, name: str) -> _Request:
        made = self[name] = _Request(messages.METHODS[name])
        return made


REQUESTS = _Requests()
_NOTHING = ()


def collection_part(name: str) -> bytes:
    """The field `collection` of the requests about documents, as it is sent."""
    return _COLLECTION(name)


_COLLECTION = _text_part(messages.tag(messages.METHODS["Get"].request, "collection"))


# Answers.

def document(of: Any, message: Any) -> Any:
    found = _read_document(message)
    if of is not None:
        found.content = from_content(of, found.content)
    return found


_read_document = messages.reader(messages.message("Document"))


def written(of: Any, answer: Any, name: str) -> Any:
    stale = (name == "Update" or name == "Delete") and answer.stale
    return Written(document(of, answer.document), answer.attempts, answer.changed, answer.replayed, stale, answer.commit_position)


def value(answer: Any, field: Optional[str]) -> Any:
    """The answer, or that field of it."""
    if field is None:
        return messages.plain(answer)
    found = getattr(answer, field)
    if isinstance(found, (str, int, bytes)):
        return found
    return messages.plain(found) if hasattr(found, "DESCRIPTOR") else [messages.plain(each) for each in found]


# Documents.

# The document is not there. A collection need not exist: the first write makes it.
MISSING = (reasons.DocumentNotFound, reasons.DocumentDeleted, reasons.CollectionNotFound)


def no_document(error: StrataError, collection: str, id: str) -> StrataError:
    """The error for a document that has to be there, where not even its collection is."""
    return reasons.DocumentNotFound("no such document", code=error.code, reason="DOCUMENT_NOT_FOUND",
                                    metadata={"collection": collection, "id": id}, outcome_unknown=error.outcome_unknown,
                                    request_id=error.request_id)


def batch_get(settings: Settings, of: Any, collection: str, members: Dict[str, Any]) -> Operation:
    found: BatchGetAnswer[Any] = BatchGetAnswer([], [])
    while True:
        request = REQUESTS["BatchGet"].make(settings, members, collection=collection)
        try:
            answer = yield from settings.call("BatchGet", request)
        except reasons.CollectionNotFound:
            found.missing_ids += request.ids
            return found
        found.documents += [document(of, each) for each in answer.documents]
        found.missing_ids += answer.missing_ids
        if not answer.remaining_ids:
            return found
        members = dict(members, ids=list(answer.remaining_ids))


def modify(settings: Settings, of: Any, collection: str, id: str, function: Callable[[Any], Any], members: Dict[str, Any]) -> Operation:
    began = time.monotonic()
    conflicts = 0
    while True:
        found: types.Document[Any] = types.Document(collection=collection, id=id)
        try:
            answer = yield from settings.call("Get", messages.METHODS["Get"].request(collection=collection, id=id, encoding=2))
            found = document(of, answer.document)
        except MISSING as error:
            # That of the deletion.
            found.version = int(error.metadata.get("version", 0))
        content = yield Invoke(function, found.content)
        if content is None:
            if found.content is not None and _differ(found.content, document(of, answer.document).content):
                raise TypeError(f"the function of modify changed the content of {id!r} in place and returned nothing: "
                                "it has to return the content that is to be written, or leave what it was given as it is")
            return Written(found)
        try:
            request = REQUESTS["Update"].make(settings, dict(members, replace=content, if_version=found.version),
                                              collection=collection, id=id, allow_missing=True)
            return written(of, (yield from settings.call("Update", request)), "Update")
        except reasons.VersionConflict:
            conflicts += 1
            pause = 0.0
            if conflicts > 1:
                pause = min(PAUSE_FIRST * 2 ** min(conflicts - 2, 6) * random.uniform(0.5, 1), PAUSE_MODIFY_MAX)
            if time.monotonic() + pause - began > settings.retry_for:
                raise
        if pause:
            yield Sleep(pause)


def _differ(content: Any, read: Any) -> bool:
    try:
        return encode(content) != encode(read)
    except InvalidValue:
        # What was read can be written.
        return True


# Listings.

def pages(settings: Settings, name: str, items: str, members: Dict[str, Any], convert: Callable[[Any], Any] = messages.plain,
          **fields: Any) -> Operation:
    """Gives the items of page after page, each asked for when it is needed."""
    request = REQUESTS[name].make(settings, members, **fields)
    while True:
        try:
            answer = yield from settings.call(name, request)
        except reasons.CollectionNotFound as error:
            if name in _OF_A_DOCUMENT:
                raise no_document(error, request.collection, request.id) from None
            # One that vanishes on the way cuts the listing short.
            if name in _OF_A_COLLECTION and not request.page_token:
                return
            raise
        yield Items([convert(item) for item in getattr(answer, items)])
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token


_OF_A_DOCUMENT = ("History", "Diff")
_OF_A_COLLECTION = ("List", "ListRoster")


def versions(settings: Settings, of: Any, collection: str, members: Dict[str, Any]) -> Operation:
    read = messages.reader(messages.message("Version"))

    def version(message: Any) -> Any:
        found = read(message)
        if of is not None:
            found.content = from_content(of, found.content)
        return found
    return pages(settings, "History", "versions", members, version, collection=collection)


def documents(settings: Settings, of: Any, collection: str, members: Dict[str, Any]) -> Operation:
    return pages(settings, "List", "documents", members, lambda message: document(of, message), collection=collection)


# Calls of the other services.

def call(settings: Settings, name: str, members: Dict[str, Any], field: Optional[str] = None) -> Operation:
    """One call; the value is its answer, or that field of it."""
    answer = yield from settings.call(name, REQUESTS[name].make(settings, members))
    return value(answer, field)


def waiting(settings: Settings, wait: Any) -> Optional[float]:
    """The time for an attempt of a call that waits at the server; None: as of any other call."""
    if wait is None:
        return None
    return settings.timeout + (wait.total_seconds() if isinstance(wait, datetime.timedelta) else wait)


def purge_tombstones(settings: Settings, members: Dict[str, Any]) -> Operation:
    total = types.PurgeTombstonesResponse()
    token = ""
    while True:
        answer = yield from call(settings, "PurgeTombstones", dict(members, page_token=token))
        total.examined += answer.examined
        total.purged_students += answer.purged_students
        total.purged_tombstones += answer.purged_tombstones
        total.refused_student_ids += answer.refused_student_ids
        # What is true of all; 0: nothing may go at present, and asking again at once does not help.
        through = answer.through_sequence_number
        total.through_sequence_number = through if not token else min(total.through_sequence_number, through)
        token = answer.next_page_token
        if not token or not through:
            return total


def pushed(message: Any) -> Any:
    """A message to be pushed, with a request id."""
    members = dict(message) if isinstance(message, dict) else {
        field.name: getattr(message, field.name) for field in dataclasses.fields(message)
        if getattr(message, field.name) not in (None, "")}
    if not members.get("request_id"):
        members["request_id"] = new_request_id()
    return messages.fill(messages.message("PushedMessage")(), members)


def push(settings: Settings, queue: str, each: Iterable[Any]) -> Operation:
    request = messages.METHODS["Push"].request(queue=queue)
    request.messages.extend(pushed(message) for message in each)
    answer = yield from settings.call("Push", request, request_id=request.messages[0].request_id if request.messages else None)
    return [messages.plain(result) for result in answer.results]


def push_one(settings: Settings, queue: str, message: Dict[str, Any]) -> Operation:
    results = yield from push(settings, queue, [message])
    return results[0]


# Streams.

class Watching:
    """A watch, and what of it has been given."""

    def __init__(self, settings: Settings, members: Dict[str, Any]) -> None:
        self._settings = settings
        self._method = messages.METHODS["Watch"]
        self._request = messages.fill(self._method.request(encoding=2), members)
        self._stream: Any = None
        self._closed = False
        self.resume_position: Optional[int] = None
        self.last_position: Optional[int] = None
        self.snapshot: Optional[types.Snapshot] = None

    def steps(self) -> Operation:
        """Gives events, and documents of the copy that `snapshot` asks for; after a break from where it stood."""
        attempts = Attempts(self._settings, False, True)
        last = (-1, -1)
        try:
            while not self._closed:
                try:
                    if self._stream is None:
                        self._stream = yield Open(self._method, self._request)
                        # It may have been closed meanwhile.
                        continue
                    answer = yield Read(self._stream)
                    if answer is None:
                        raise Failure("UNAVAILABLE", "the stream ended", ())
                except Failure as failure:
                    self._stream = None
                    if self._closed:
                        return
                    attempts.broke()
                    yield Sleep(attempts.failed(failure))
                    continue
                attempts.settled()
                items: List[Any] = [messages.plain(each) for each in answer.documents]
                for each in answer.events:
                    # A commit in pieces: the resume position lags, and items already given come again.
                    if (each.position, each.index) > last:
                        last = each.position, each.index
                        items.append(messages.plain(each))
                if len(items) > 1:
                    yield Items(items[:-1])
                self._reached(answer)
                yield Items(items[-1:])
        finally:
            if self._stream is not None:
                self._stream.cancel()

    def _reached(self, answer: Any) -> None:
        """The answer's last item is about to be given."""
        self.last_position = answer.last_position
        if answer.HasField("snapshot"):
            self.snapshot = messages.plain(answer.snapshot)
        if answer.HasField("snapshot") and not answer.snapshot.complete:
            self._request.snapshot.CopyFrom(answer.snapshot)
        else:
            # Zero is a place like others: before the first commit of a store.
            self.resume_position = self._request.after_position = answer.resume_position

    def close(self) -> Operation:
        self._closed = True
        stream = self._stream
        if stream is not None:
            stream.cancel()
        yield from ()


def verify(settings: Settings, members: Dict[str, Any]) -> Operation:
    method = messages.METHODS["Verify"]
    request = messages.fill(method.request(), members)
    attempts = Attempts(settings, bool(members.get("repair")), True)
    stream = None
    while True:
        try:
            if stream is None:
                stream = yield Open(method, request)
            answer = yield Read(stream)
        except Failure as failure:
            stream = None
            attempts.broke()
            pause = attempts.failed(failure)
            yield Sleep(pause)
            continue
        if answer is None:
            return
        attempts.settled()
        if answer.resume_token:
            request.resume_token = answer.resume_token
        try:
            yield Items([messages.plain(answer)])
        except GeneratorExit:
            stream.cancel()
            raise


# Streams both ways.

@dataclasses.dataclass
class _Sent:
    """A message of apply, until its answer was given."""

    request: Any
    began: float
    answer: Any = None


def apply(settings: Settings, iterator: Any) -> Operation:
    """Sends what the iterator gives and gives the answers in its order; after a break sends again what was not answered."""
    method = messages.METHODS["Apply"]
    attempts = Attempts(settings, True, True)
    waiting: Deque[_Sent] = collections.deque()
    # Of the stream that is open: what it has not answered, and why another has to ask again, if so.
    on_their_way: Deque[_Sent] = collections.deque()
    retiring: Optional[Failure] = None
    duplex: Any = None
    more = True
    try:
        while more or waiting:
            try:
                if duplex is None:
                    duplex, retiring = (yield OpenDuplex(method)), None
                    on_their_way = collections.deque(each for each in waiting if each.answer is None)
                    for sent in on_their_way:
                        duplex.send(sent.request)
                    if not more:
                        duplex.finish()
                if more and retiring is None and len(waiting) < APPLY_WINDOW:
                    given = yield Next(iterator)
                    if given is NOTHING:
                        more = False
                        duplex.finish()
                        continue
                    sent = _Sent(_applied(settings, given), time.monotonic())
                    waiting.append(sent)
                    on_their_way.append(sent)
                    duplex.send(sent.request)
                    answer = yield Take(duplex, 0)
                else:
                    answer = yield Take(duplex)
                if answer is None:
                    raise retiring or Failure("UNAVAILABLE", "the stream ended", ())
            except Failure as failure:
                duplex = None
                attempts.broke()
                pause = attempts.failed(failure)
                yield Sleep(pause)
                continue
            if answer is NOTHING or not on_their_way:
                continue
            sent = on_their_way.popleft()
            if answer.HasField("error"):
                refusal = failure_of_part(answer.error)
                if refusal.retryable_part() and time.monotonic() - sent.began < settings.retry_for:
                    # Another stream asks again, once this one has answered what it was told.
                    if retiring is None:
                        duplex.finish()
                    retiring = refusal
                    continue
            attempts.settled()
            sent.answer = answer
            answered = []
            while waiting and waiting[0].answer is not None:
                answered.append(messages.plain(waiting.popleft().answer))
            yield Items(answered)
    finally:
        if duplex is not None:
            duplex.cancel()


def _applied(settings: Settings, given: Any) -> Any:
    request = messages.fill(messages.METHODS["Apply"].request(), messages.members(given))
    if settings.actor and not request.change.actor:
        request.change.actor = settings.actor
    return request


class Session:
    """A stream both ways that is opened again after a break. What is left to the two kinds: what is said, and what an answer means.

    Several threads may say something while one iterates.
    """

    method = ""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._duplex: Any = None
        self.closed = False

    def opened(self) -> None:
        """A stream begins; what was said over the one before was perhaps not heard."""
        raise NotImplementedError

    def heard(self, answer: Any) -> None:
        raise NotImplementedError

    def lost(self) -> None:
        """What came over the stream that broke counts for nothing."""
        raise NotImplementedError

    def next(self) -> Any:
        """What an iterator gives next; NOTHING if there is nothing."""
        raise NotImplementedError

    def ready(self) -> bool:
        raise NotImplementedError

    def due(self) -> Optional[float]:
        """Says what is due. In how many seconds there will be more; None: not by itself."""
        return None

    def tell(self) -> Operation:
        """Tells the user what became of what was said, if that is to be known."""
        yield from ()

    def owes(self) -> bool:
        """Whether there is something to be said, or to be answered."""
        return False

    def may_leave(self) -> bool:
        """Whether all was said."""
        return True

    def send(self, message: Any) -> None:
        if self._duplex is not None:
            self._duplex.send(message)

    def request(self, **message: Any) -> Any:
        return messages.fill(messages.METHODS[self.method].request(), message)

    def _open(self) -> Operation:
        duplex = yield OpenDuplex(messages.METHODS[self.method])
        with self._lock:
            self._duplex = duplex
            self.opened()

    def steps(self) -> Operation:
        attempts = Attempts(self._settings, False, True)
        while not self.closed:
            try:
                if self._duplex is None:
                    yield from self._open()
                with self._lock:
                    duplex, due = self._duplex, self.due()
                if duplex is None:  # closed meanwhile
                    return
                # What has come already may say that what came before it counts for nothing.
                answer = yield Take(duplex, 0 if self.ready() else due)
                if answer is None:
                    raise Failure("UNAVAILABLE", "the stream ended", ())
            except Failure as failure:
                if self.closed:
                    return
                with self._lock:
                    self._duplex = None
                    self.lost()
                attempts.broke()
                pause = attempts.failed(failure)
                yield Sleep(pause)
                continue
            if answer is not NOTHING:
                attempts.settled()
                with self._lock:
                    self.heard(answer)
                yield from self.tell()
            elif not self.closed:
                with self._lock:
                    item = self.next()
                if item is not NOTHING:
                    yield Items([item])

    def close(self) -> Operation:
        """Says that there is no more, once all is said, and waits until the server has taken it in."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self.lost()
        attempts = Attempts(self._settings, False, True)
        end = time.monotonic() + CLOSE_PATIENCE
        finished = False
        while time.monotonic() < end:
            try:
                if self._duplex is None:
                    if not self.owes():
                        break
                    yield from self._open()
                    finished = False
                with self._lock:
                    due = self.due()
                    if not finished and self.may_leave():
                        finished = True
                        self._duplex.finish()
                left = max(0.001, end - time.monotonic())
                answer = yield Take(self._duplex, left if due is None else min(left, due))
                if answer is None:
                    raise Failure("UNAVAILABLE", "the stream ended", ())
            except Failure as failure:
                with self._lock:
                    self._duplex = None
                if not self.owes():
                    break
                attempts.broke()
                try:
                    pause = attempts.failed(failure)
                except StrataError:
                    break
                yield Sleep(min(pause, max(0.0, end - time.monotonic())))
                continue
            if answer is not NOTHING:
                attempts.settled()
                with self._lock:
                    self.heard(answer)
                yield from self.tell()
        duplex, self._duplex = self._duplex, None
        if duplex is not None:
            duplex.cancel()
        yield from self.tell()


@dataclasses.dataclass
class Delivery:
    """An event for a consumer."""

    event: types.Event
    attempt: int
    replay: bool
    lease: Optional[types.LeaseToken]
    """For the write that is the effect: with it the write takes place once, and acknowledges the event."""
    partition: int
    origin: Any = dataclasses.field(repr=False, compare=False)
    """Which assignment of its partition brought it, and after how many failures."""

    @property
    def place(self) -> Tuple[int, int]:
        return self.event.position, self.event.index


@dataclasses.dataclass
class _Holding:
    """A partition that the consumer has. `term` tells what came before a failure from what came after."""

    assignment: int
    term: int = 0
    failed: Optional[Tuple[int, int]] = None
    """The position of the failed event that has not come again: until then deliveries are void, except replays."""
    waiting: Deque[Delivery] = dataclasses.field(default_factory=collections.deque)


class Consuming(Session):
    method = "Consume"

    def __init__(self, settings: Settings, members: Dict[str, Any]) -> None:
        super().__init__(settings)
        self._first = self.request(open=dict(members, encoding="ENCODING_BSON"))
        self._holdings: Dict[int, _Holding] = {}
        self._assignments = 0
        # The partitions that something waits of, in the order of their turns: none waits for all that there is of another.
        self._turns: Deque[int] = collections.deque()

    def opened(self) -> None:
        self.lost()
        self.send(self._first)

    def lost(self) -> None:
        self._holdings.clear()
        self._turns.clear()

    def heard(self, answer: Any) -> None:
        kind = answer.WhichOneof("message")
        if kind == "assigned":
            self._drop(answer.assigned.partition)
            self._assignments += 1
            self._holdings[answer.assigned.partition] = _Holding(self._assignments)
        elif kind == "revoked":
            self._drop(answer.revoked.partition)
        elif kind == "acknowledged":
            done = answer.acknowledged
            holding = self._holdings.get(done.partition)
            if holding is not None and holding.failed is not None and (done.position, done.index) >= holding.failed:
                holding.failed = None
        elif kind == "deliveries":
            for each in answer.deliveries.deliveries:
                self._take(answer.deliveries.partition, each)

    def _drop(self, partition: int) -> None:
        holding = self._holdings.pop(partition, None)
        if holding is not None and holding.waiting:
            self._turns.remove(partition)

    def _take(self, partition: int, each: Any) -> None:
        holding = self._holdings.get(partition)
        if holding is None:
            return
        if holding.failed is not None and not each.replay:
            if (each.event.position, each.event.index) != holding.failed:
                return
            holding.failed = None
        if not holding.waiting:
            self._turns.append(partition)
        holding.waiting.append(Delivery(messages.plain(each.event), each.attempt, each.replay,
                                        messages.plain(each.lease) if each.HasField("lease") else None, partition,
                                        (holding.assignment, holding.term)))

    def ready(self) -> bool:
        return bool(self._turns)

    def next(self) -> Any:
        if not self._turns:
            return NOTHING
        partition = self._turns.popleft()
        waiting = self._holdings[partition].waiting
        delivery = waiting.popleft()
        if waiting:
            self._turns.append(partition)
        return delivery

    def answer(self, kind: str, delivery: Delivery, **more: Any) -> None:
        """Of what counts no more it says nothing: an Ack of it would end the stream."""
        with self._lock:
            holding = self._holdings.get(delivery.partition)
            if holding is None or delivery.origin[0] != holding.assignment or not (delivery.replay or delivery.origin[1] == holding.term):
                return
            position, index = delivery.place
            request = self.request(**{kind: dict(more, partition=delivery.partition, position=position, index=index)})
            if kind == "nack" and not delivery.replay:
                self._fail(holding, delivery)
            self.send(request)

    def _fail(self, holding: _Holding, delivery: Delivery) -> None:
        holding.failed = delivery.place
        holding.term += 1
        replays = collections.deque(each for each in holding.waiting if each.replay)
        if holding.waiting and not replays:
            self._turns.remove(delivery.partition)
        holding.waiting = replays


@dataclasses.dataclass
class _Question:
    """Something that was asked of a message, until it is answered."""

    message: types.QueueMessage
    kind: str
    request: Any
    number: int
    began: float
    said: bool = False
    repeated: bool = False
    failures: int = 0
    again_at: Optional[float] = None


class Receiving(Session):
    """What was not answered when a connection broke is said again over the next one.

    An answer names the token but not what was asked of it, and those to different questions come in any order; so of each token one thing
    is asked after the other.
    """

    method = "Receive"

    def __init__(self, settings: Settings, members: Dict[str, Any], refused: Optional[Callable[[types.QueueMessage, StrataError], Any]]) -> None:
        super().__init__(settings)
        self._first = self.request(open=dict(members, encoding="ENCODING_BSON"))
        self._refused = refused or _log_refusal
        self._messages: Deque[Any] = collections.deque()
        # By token, in the order in which they were asked; none is empty.
        self._rows: Dict[str, Deque[_Question]] = {}
        # Those that were refused, and are to be said again.
        self._again: Dict[str, _Question] = {}
        self._count = 0
        self._refusals: Deque[Tuple[types.QueueMessage, StrataError]] = collections.deque()

    def opened(self) -> None:
        self.send(self._first)
        self._again.clear()
        for question in sorted((row[0] for row in self._rows.values()), key=lambda each: each.number):
            question.repeated = question.repeated or question.said
            self._say(question)

    def lost(self) -> None:
        # They come again, with tokens that count.
        self._messages.clear()

    def heard(self, answer: Any) -> None:
        if not self.closed:
            self._messages.extend(answer.messages.messages)
        for token, outcome in zip(answer.results.tokens, answer.results.results):
            self._settle(token, outcome)

    def _settle(self, token: str, outcome: Any) -> None:
        row = self._rows.get(token)
        if row is None or not row[0].said:
            return
        question = row[0]
        if outcome.HasField("error"):
            failure = failure_of_part(outcome.error)
            if self._is_to_be_said_again(question, failure):
                return
            # It was finished by the first time of asking, and is kept no longer.
            if not (question.repeated and question.kind == "acknowledge" and failure.reason == "MESSAGE_NOT_FOUND"):
                self._refusals.append((question.message, failure.error(failure.leaves_unknown(), None)))
        row.popleft()
        if row:
            self._say(row[0])
        else:
            del self._rows[token]

    def _is_to_be_said_again(self, question: _Question, failure: Failure) -> bool:
        if not failure.retryable_part():
            return False
        again_at = time.monotonic() + pause_before(question.failures + 1)
        if again_at - question.began > self._settings.retry_for:
            return False
        question.failures += 1
        question.said, question.repeated, question.again_at = False, True, again_at
        self._again[question.message.token] = question
        return True

    def _say(self, question: _Question) -> None:
        question.said = True
        self.send(question.request)

    def due(self) -> Optional[float]:
        if not self._again:
            return None
        now = time.monotonic()
        for token, question in list(self._again.items()):
            if question.again_at is not None and question.again_at <= now:
                del self._again[token]
                self._say(question)
        return min((each.again_at - now for each in self._again.values() if each.again_at is not None), default=None)

    def tell(self) -> Operation:
        if self.closed and self._duplex is None:
            for row in self._rows.values():
                lost = Failure("UNAVAILABLE", "the stream ended before the answer", ())
                self._refusals.extend((question.message, lost.error(True, None)) for question in row)
            self._rows.clear()
        while self._refusals:
            refusal = self._refusals.popleft()
            yield Invoke(lambda told: self._refused(*told), refusal)

    def owes(self) -> bool:
        return bool(self._rows)

    def may_leave(self) -> bool:
        return all(len(row) == 1 and row[0].said for row in self._rows.values())

    def ready(self) -> bool:
        return bool(self._messages)

    def next(self) -> Any:
        return messages.plain(self._messages.popleft()) if self._messages else NOTHING

    def answer(self, kind: str, message: types.QueueMessage, **more: Any) -> None:
        request = self.request(**{kind: dict(more, tokens=[message.token])})
        with self._lock:
            if self.closed:
                raise StrataError("the receiver is closed", code="FAILED_PRECONDITION")
            self._count += 1
            question = _Question(message, kind, request, self._count, time.monotonic())
            row = self._rows.setdefault(message.token, collections.deque())
            row.append(question)
            if len(row) == 1:
                self._say(question)


def _log_refusal(message: types.QueueMessage, error: StrataError) -> None:
    logging.getLogger("strata_documents").warning(
        "what was said of message %s of queue %s was refused: %s", message.message_id, message.queue, error)


class Held:
    """A lease that is renewed until it is left, or lost. Its ttl counts from when the request was sent: the server's counts from later."""

    def __init__(self, settings: Settings, members: Dict[str, Any], on_lost: Optional[Callable[[StrataError], Any]]) -> None:
        self._settings, self._members, self._on_lost = settings, members, on_lost
        self._lock = threading.Lock()
        self._valid_until = 0.0
        self._lost: Optional[StrataError] = None
        self._over = False
        self.lease = types.Lease()

    @property
    def lost(self) -> Optional[StrataError]:
        if self._lost is None and not self._over and time.monotonic() >= self._valid_until:
            return self._not_renewed()
        return self._lost

    def _not_renewed(self) -> StrataError:
        return reasons.LeaseLost(f"lease {self.lease.name} could not be renewed in time", code="FAILED_PRECONDITION", reason="LEASE_LOST",
                                 metadata={"lease": self.lease.name})

    def acquire(self) -> Operation:
        wait = self._members.get("wait")
        sent = time.monotonic()
        request = REQUESTS["Acquire"].make(self._settings, self._members)
        answer = yield from self._settings.call("Acquire", request, waiting(self._settings, wait))
        self.lease = messages.plain(answer.lease)
        if wait is not None:
            # It was granted at a time that this side does not know; a renewal says from when it counts at least.
            sent = time.monotonic()
            yield from self._renew(self._settings)
        self._valid_until = sent + self.lease.ttl.total_seconds()

    def _renew(self, settings: Settings) -> Operation:
        members = {"name": self.lease.name, "token": self.lease.token, "ttl": self._members.get("ttl")}
        self.lease = yield from call(settings, "Renew", members, "lease")

    def renewing(self) -> Operation:
        """Renews it three times a ttl; what fails is tried again as long as the lease is valid."""
        failures = 0
        while True:
            pause = pause_before(failures) if failures else self.lease.ttl.total_seconds() / 3
            yield Sleep(max(0.0, min(pause, self._valid_until - time.monotonic())))
            sent = time.monotonic()
            left = self._valid_until - sent
            if left < 0.001:
                break
            try:
                yield from self._renew(self._settings.once(left))
            except StrataError as error:
                failures += 1
                if isinstance(error, reasons.LeaseLost):
                    return (yield from self._lose(error))
                continue
            failures = 0
            self._valid_until = sent + self.lease.ttl.total_seconds()
        yield from self._lose(self._not_renewed())

    def _lose(self, error: StrataError) -> Operation:
        with self._lock:
            if self._over:
                return
            self._over, self._lost = True, error
        if self._on_lost is not None:
            yield Invoke(self._on_lost, error)

    def leave(self, failed: bool) -> Operation:
        """Gives it back. `failed`: an exception is on its way."""
        error = self.lost
        if error is not None:
            yield from self._lose(error)
            if self._on_lost is None and not failed:
                raise error
            return
        with self._lock:
            self._over = True
        try:
            # Where no answer comes it expires by itself.
            yield from call(self._settings.once(RELEASE_PATIENCE), "Release", {"name": self.lease.name, "token": self.lease.token})
        except StrataError as refused:
            if refused.reason is not None and not isinstance(refused, reasons.LeaseLost) and not failed:
                raise


# Transactions.

def part(kind: str, members: Dict[str, Any]) -> Any:
    """One write of a transaction; who and why is the whole's unless the part says otherwise."""
    write = messages.message("Write")()
    messages.fill(getattr(write, kind), members, REQUESTS[kind.capitalize()].setters)
    return write


def commit(settings: Settings, parts: Any, request_id: str, members: Dict[str, Any]) -> Any:
    """The request of a transaction. The same request id each time, unless the caller gives one."""
    request = REQUESTS["Commit"].make(settings, dict(members, request_id=members.get("request_id") or request_id))
    request.MergeFrom(parts)
    return request
