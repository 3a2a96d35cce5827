"""The rules of both clients, without input and output: requests, repetitions, and the meaning of answers.

An operation is a generator. It yields what it wants done (Call, Sleep, Invoke, Open, Read, Items and so on) and is sent the outcome, or a
Failure is thrown into it; the synchronous client and the one of asyncio differ only in how they do that.
"""

import copy
import datetime
import ipaddress
import os
import random
import time
from typing import Any, Dict, Generator, List, Optional, Tuple

from . import messages, reasons
from .errors import StrataError

PAUSE_FIRST = 0.1
PAUSE_MAX = 5.0
PAUSE_MODIFY_MAX = 0.1
CLOSE_PATIENCE = 10.0
RELEASE_PATIENCE = 3.0
APPLY_WINDOW = 1000

_STATUS = messages.message("google.rpc.Status")
_ERROR_INFO = messages.message("google.rpc.ErrorInfo")
_RETRY_INFO = messages.message("google.rpc.RetryInfo")
# What gRPC says by itself where no answer came; RESOURCE_EXHAUSTED of a call that was reset and of an answer too large for it.
_BARE_UNKNOWN = frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL", "RESOURCE_EXHAUSTED"))


class Call:
    """One attempt of a unary call."""

    __slots__ = ("method", "request", "timeout")

    def __init__(self, method: messages.Method, request: Any, timeout: Optional[float]) -> None:
        self.method, self.request, self.timeout = method, request, timeout


class Sleep:
    """A pause in seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Invoke:
    """A call of the user's function, which may be a coroutine function with asyncio."""

    __slots__ = ("function", "argument")

    def __init__(self, function: Any, argument: Any) -> None:
        self.function, self.argument = function, argument


class Open:
    """A stream of answers to one request; the outcome is its handle."""

    __slots__ = ("method", "request")

    def __init__(self, method: messages.Method, request: Any) -> None:
        self.method, self.request = method, request


class Read:
    """The next answer of a stream, None at its end."""

    __slots__ = ("stream",)

    def __init__(self, stream: Any) -> None:
        self.stream = stream


class OpenDuplex:
    """A stream both ways; the outcome has send, finish and cancel, which do not wait."""

    __slots__ = ("method",)

    def __init__(self, method: messages.Method) -> None:
        self.method = method


class Take:
    """What came next over a stream both ways: None at its end, NOTHING if nothing comes within the patience (None: for ever)."""

    __slots__ = ("duplex", "patience")

    def __init__(self, duplex: Any, patience: Optional[float] = None) -> None:
        self.duplex, self.patience = duplex, patience


class Next:
    """What the user's iterator gives next, NOTHING at its end."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator


NOTHING = object()


class Items:
    """What an iterator gives next."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items


class Failure(Exception):
    """What gRPC said of an attempt that failed."""

    def __init__(self, code: str, message: str, trailing: Any, final: bool = False) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        # The caller's own doing: nothing is tried again. `sent`: the call may have reached the server. `connected`: so far as is known.
        self.final, self.sent, self.connected = final, True, True
        self.reason: Optional[str] = None
        self.metadata: Dict[str, str] = {}
        self.retry_delay: Optional[datetime.timedelta] = None
        for key, value in trailing or ():
            if key == "grpc-status-details-bin":
                self._read(value)

    def _read(self, data: bytes) -> None:
        try:
            details = _STATUS.FromString(data).details
            for detail in details:
                kind = detail.type_url.rpartition("/")[2]
                if kind == "google.rpc.ErrorInfo":
                    info = _ERROR_INFO.FromString(detail.value)
                    if info.domain == "strata":
                        self.reason, self.metadata = info.reason, dict(info.metadata)
                elif kind == "google.rpc.RetryInfo":
                    self.retry_delay = messages.duration_of(_RETRY_INFO.FromString(detail.value).retry_delay)
        except Exception:  # Details that are damaged say nothing; the code stands.
            return

    def retryable(self, harmless: bool) -> bool:
        """By code and reason alone. A call that does harm when done twice is repeated only where the server said that it did nothing."""
        if self.final:
            return False
        told = self.retry_delay is not None and self.reason != "LEASE_HELD"
        if not harmless:
            return (told and self.code in ("RESOURCE_EXHAUSTED", "ABORTED")) or (self.code == "UNAVAILABLE" and self.reason == "DRAINING")
        if self.code == "CANCELLED":
            return self.reason is None
        return told or self.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")

    def retryable_part(self) -> bool:
        """The same of a part of an answer, which carries no RetryInfo: the reason says whether one like it comes with that."""
        return self.reason in reasons.RETRIED or self.retryable(True)

    def leaves_unknown(self) -> bool:
        if not self.sent:
            return False
        if self.reason is None:
            return self.code in _BARE_UNKNOWN
        return self.reason in ("OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED")

    def error(self, unknown: bool, request_id: Optional[str]) -> StrataError:
        kind = reasons.BY_REASON.get(self.reason or "", StrataError)
        return kind(self.message, code=self.code, reason=self.reason, metadata=self.metadata, retry_delay=self.retry_delay,
                    outcome_unknown=unknown, request_id=request_id or None)


def failure_of_part(error: Any) -> Failure:
    """What the answer says of a part that was refused (ApplyError)."""
    failure = Failure(_CODES[error.code] if 0 <= error.code < len(_CODES) else "UNKNOWN", error.message, ())
    failure.reason, failure.metadata = error.reason or None, dict(error.metadata)
    if failure.reason in reasons.RETRIED:
        failure.retry_delay = datetime.timedelta()
    return failure


_CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
          "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED").split()


def pause_before(repetition: int) -> float:
    """How long to wait before that repetition, from 1."""
    return min(PAUSE_FIRST * 2 ** min(repetition - 1, 16), PAUSE_MAX) * random.uniform(0.5, 1)


_OWN_DOING = frozenset(("ALREADY_EXISTS", "NOT_FOUND", "FAILED_PRECONDITION", "ABORTED"))


class Attempts:
    """Decides after each failure whether there is another attempt, and when."""

    def __init__(self, settings: "Settings", writes: bool, harmless: bool, request_id: Optional[str] = None,
                 began: Optional[float] = None) -> None:
        self._settings, self._writes, self._harmless, self._request_id = settings, writes, harmless, request_id
        self._began = time.monotonic() if began is None else began
        self._failures = 0
        self._unknown = False

    def failed(self, failure: Failure) -> float:
        """How long to pause before the next attempt; raises the error if there is none."""
        again = failure.retryable(self._harmless)
        patience = self._settings.patience(failure)
        unknown = failure.leaves_unknown()
        # What was unknown once stays so until an answer settles it. A refusal that asks to come again settles nothing, and one that
        # may be an attempt's own doing only where the server knows that attempt again.
        if again or (failure.code in _OWN_DOING and not self._request_id):
            self._unknown = unknown = unknown or self._unknown
        self._failures += 1
        pause = pause_before(self._failures)
        if failure.retry_delay is not None:
            pause = max(pause, failure.retry_delay.total_seconds())
        if not again or time.monotonic() + pause - self._began > patience:
            raise failure.error((unknown or (failure.final and self._unknown)) and self._writes, self._request_id)
        return pause

    def settled(self) -> None:
        """A stream got on: its next break begins anew."""
        self._settings.connected = True
        self._failures, self._unknown = 0, False
        self._began = time.monotonic()

    def broke(self) -> None:
        """A stream that got on has broken: the time counts from now."""
        if self._failures == 0:
            self._began = time.monotonic()


Operation = Generator[Any, Any, Any]


def closed(sent: bool = False) -> Failure:
    """The caller closed the client, after a call was sent or before: there is no other attempt."""
    failure = Failure("CANCELLED", "the client is closed", (), final=True)
    failure.sent = sent
    return failure


class Settings:
    """What a client was made with."""

    def __init__(self, timeout: float, retry_for: float, actor: Optional[str], connect_timeout: float = 3.0, target: str = "") -> None:
        for name, value, least in (("timeout", timeout, 0.001), ("retry_for", retry_for, 0), ("connect_timeout", connect_timeout, 0.001)):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name} is a number of seconds, not {value!r}")
            if not least <= value <= 1e7:
                raise ValueError(f"{name} is {value}, and has to be from {least} to 1e7 seconds")
        if actor is not None and not isinstance(actor, str):
            raise TypeError(f"actor is a str, not {actor!r}")
        self.timeout, self.retry_for, self.actor, self.connect_timeout, self.target = timeout, retry_for, actor, connect_timeout, target
        # Whether a connection ever stood.
        self.connected = False

    def once(self, timeout: float) -> "Settings":
        """Those of a call that is not repeated and ends in that time."""
        settings = copy.copy(self)
        settings.timeout, settings.retry_for = max(0.001, min(self.timeout, timeout)), 0
        return settings

    def patience(self, failure: Failure) -> float:
        """How long after a call's first attempt the next one may begin. A server that never was there is waited for less than one that restarts."""
        if failure.connected:
            # What ran out of time may have waited for a connection.
            self.connected = self.connected or failure.code not in ("DEADLINE_EXCEEDED", "CANCELLED")
        elif not self.connected:
            failure.message = f"no connection to {self.target}: is stratad running there? ({failure.message})"
            return min(self.connect_timeout, self.retry_for)
        return self.retry_for

    def call(self, name: str, request: Any, timeout: Optional[float] = None, request_id: Optional[str] = None) -> Operation:
        """Calls, and again as the rules say; the value is the response message."""
        method = messages.METHODS[name]
        began = time.monotonic()
        try:
            answer = yield Call(method, request, timeout or self.timeout)
            self.connected = True
            return answer
        except Failure as error:
            failure = error
        return (yield from self.again(method, request, timeout or self.timeout, began, failure, request_id))

    def again(self, method: messages.Method, request: Any, timeout: float, began: float, failure: Failure,
              request_id: Optional[str] = None) -> Operation:
        """What follows a first attempt that failed. `began`: when that was, by time.monotonic()."""
        attempts = Attempts(self, method.writes, method.harmless, request_id or getattr(request, "request_id", None), began)
        while True:
            yield Sleep(attempts.failed(failure))
            try:
                answer = yield Call(method, request, timeout)
                self.connected = True
                return answer
            except Failure as error:
                failure = error


def new_request_id() -> str:
    """A random UUID, as uuid.uuid4() makes them at five times the cost: that asks the system each time."""
    try:
        return _request_ids.pop()
    except IndexError:
        digits = os.urandom(16 * 64).hex()
        made = [f"{digits[at:at + 8]}-{digits[at + 8:at + 12]}-4{digits[at + 13:at + 16]}-{_VARIANTS[digits[at + 16]]}"
                f"{digits[at + 17:at + 20]}-{digits[at + 20:at + 32]}" for at in range(0, len(digits), 32)]
        _request_ids.extend(made[1:])
        return made[0]


_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
# Made in advance; each is given once. A child that has them too would write under its parent's, and be answered that it is done already.
_request_ids: List[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_request_ids.clear)


def target_of(target: str) -> Tuple[str, bool]:
    """gRPC's name of a target, and whether it is loopback."""
    if not isinstance(target, str) or not target:
        raise ValueError("target is host:port, host (port 50051) or [v6]:port")
    if "://" in target:
        raise ValueError(f"{target}: a target is host:port without a scheme; for TLS give tls=True")
    if target.startswith("["):
        host, bracket, port = target[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError(f"{target}: an IPv6 target is [address]:port")
        port = port[1:]
        ipaddress.IPv6Address(host.partition("%")[0])
    elif target.count(":") > 1:
        raise ValueError(f"{target}: an IPv6 target is [address]:port")
    else:
        host, _, port = target.partition(":")
    if not host or any(c.isspace() or c in "/@?#" for c in host):
        raise ValueError(f"{target}: this is no host")
    port = port or "50051"
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{target}: a port is 1 to 65535")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}"), loopback
