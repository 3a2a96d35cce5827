"""Does what core's operations want done, in the caller's thread."""

import dataclasses
import math
import os
import queue
import threading
import time
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Tuple, Union

import grpc

from . import core, messages
from .core import Failure


@dataclasses.dataclass(frozen=True)
class Tls:
    """Names of files (PEM). Without `authorities` those that the system trusts, or of SSL_CERT_FILE; a certificate goes with its key."""

    authorities: Optional[str] = None
    certificate: Optional[str] = None
    key: Optional[str] = None

    def credentials(self) -> grpc.ChannelCredentials:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate goes with its key")
        files = []
        for name in (self.authorities or _system_authorities(), self.key, self.certificate):
            if name is None:
                files.append(None)
            else:
                with open(name, "rb") as file:
                    files.append(file.read())
        return grpc.ssl_channel_credentials(*files)


def _system_authorities() -> Optional[str]:
    # gRPC's own list is not the system's.
    import ssl

    found = ssl.get_default_verify_paths().cafile
    if found is None and os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
        found = "/etc/ssl/certs/ca-certificates.crt"
    return found


def channel_arguments(target: str, tls: Union[None, bool, Tls], token: Optional[str],
                      connect_timeout: float) -> Tuple[str, Any, List[Tuple[str, Any]], Any]:
    """gRPC's target, credentials, options and metadata."""
    address, loopback = core.target_of(target)
    credentials = None
    if tls is not None and not isinstance(tls, (bool, Tls)):
        raise TypeError(f"tls is None, True or Tls(authorities, certificate, key), not {tls!r}")
    if tls:
        credentials = (Tls() if tls is True else tls).credentials()
    if token is not None and not isinstance(token, str):
        raise TypeError(f"a token is a str, not {type(token).__name__}")
    if token and not all("!" <= letter <= "~" for letter in token):
        raise ValueError("the token has other characters than printable ASCII; of a file, is the line's end taken off?")
    if token and not credentials and not loopback:
        raise ValueError("a token goes over the network with TLS only")
    options: List[Tuple[str, Any]] = [
        ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0),
        # A server that restarts is back within a second or two, and is looked for as often as calls are repeated.
        # The second is how long connecting may take, in 32 bits.
        ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", math.ceil(min(connect_timeout, 86_400) * 1000)),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A server that is gone or stands still without a word is noticed, however long a stream is silent otherwise.
        # By itself gRPC stops after two such pings.
        ("grpc.keepalive_time_ms", 60_000), ("grpc.keepalive_timeout_ms", 20_000), ("grpc.http2.max_pings_without_data", 0),
        # Clients in one process are as apart as clients in two.
        ("grpc.use_local_subchannel_pool", 1)]
    if loopback:
        options.append(("grpc.enable_http_proxy", 0))
    return address, credentials, options, (("authorization", f"Bearer {token}"),) if token else None


def failure_of(error: Any) -> Failure:
    failure = Failure(error.code().name, error.details() or "", error.trailing_metadata())
    # What gRPC says itself of a call that it never sent; what a peer says may be about a server beyond that.
    if (failure.code == "UNAVAILABLE" and failure.message.startswith(("failed to connect to all addresses", "DNS resolution failed"))
            and "received from peer" not in (error.debug_error_string() or "")):
        failure.sent = failure.connected = False
    return failure


class Duplex:
    """A stream both ways. Sending never waits; a thread takes what comes."""

    def __init__(self, stub: Any, metadata: Any) -> None:
        self._outgoing: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._incoming: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._call = stub(iter(self._outgoing.get, None), metadata=metadata)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for answer in self._call:
                self._incoming.put(answer)
            self._incoming.put(None)
        except grpc.RpcError as error:
            self._incoming.put(failure_of(error))
        # gRPC's own thread waits for more to send until it is told.
        self._outgoing.put(None)

    def send(self, message: Any) -> None:
        self._outgoing.put(message)

    def finish(self) -> None:
        self._outgoing.put(None)

    def cancel(self) -> None:
        self._outgoing.put(None)
        self._call.cancel()

    def take(self, patience: Optional[float]) -> Any:
        try:
            found = self._incoming.get(timeout=patience) if patience != 0 else self._incoming.get_nowait()
        except queue.Empty:
            return core.NOTHING
        if found is None or isinstance(found, Failure):
            # Whoever else takes is told of the end too.
            self._incoming.put(found)
        if isinstance(found, Failure):
            raise found
        return found


class Background:
    """An operation in a thread of its own, until it is stopped."""

    def __init__(self, connection: "Connection", operation: core.Operation) -> None:
        self._connection, self._operation = connection, operation
        self._stopped = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        self._connection.run(self._operation, self._stopped)

    def stop(self) -> core.Operation:
        """A call that is under way is not waited for: nothing comes of its answer."""
        self._stopped.set()
        yield from ()


class Connection:
    """A channel, and the driver of operations over it."""

    def __init__(self, target: str, tls: Union[None, bool, Tls], token: Optional[str], settings: core.Settings) -> None:
        address, credentials, options, self._metadata = channel_arguments(target, tls, token, settings.connect_timeout)
        self.settings = settings
        self._channel = (grpc.insecure_channel(address, options) if credentials is None
                         else grpc.secure_channel(address, credentials, options))
        self._stubs: Dict[str, Callable[..., Any]] = {}
        self._bytes_stubs: Dict[str, Callable[..., Any]] = {}
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._channel.close()

    def call(self, method: messages.Method, request: Any, timeout: Optional[float] = None, request_id: Optional[str] = None) -> Any:
        """Calls, and again as the rules say: what Settings.call does, without a driver as long as nothing fails.

        A request that is bytes is sent as it is; `request_id` is what it has as such.
        """
        began = time.monotonic()
        timeout = timeout or self.settings.timeout
        stub = self._unary(method, request)
        try:
            answer = stub(request, timeout, self._metadata)
            self.settings.connected = True
            return answer
        except (grpc.RpcError, ValueError) as error:
            failure = self._failure_of(error)
        return self.run(self.settings.again(method, request, timeout, began, failure, request_id))

    def _unary(self, method: messages.Method, request: Any) -> Any:
        if type(request) is not bytes:
            return self._stub(method, "unary_unary")
        stub = self._bytes_stubs.get(method.path)
        if stub is None:
            stub = self._bytes_stubs[method.path] = self._channel.unary_unary(method.path, None, method.response.FromString)
        return stub

    def _failure_of(self, error: Exception) -> Failure:
        """What gRPC says of a call; where the channel is closed, a ValueError, and CANCELLED of calls that were under way."""
        if self._closed and (isinstance(error, ValueError) or error.code() is grpc.StatusCode.CANCELLED):
            return core.closed(sent=not isinstance(error, ValueError))
        if isinstance(error, ValueError):
            raise error
        return failure_of(error)

    def _stub(self, method: messages.Method, kind: str) -> Any:
        stub = self._stubs.get(method.path)
        if stub is None:
            stub = self._stubs[method.path] = getattr(self._channel, kind)(
                method.path, method.request.SerializeToString, method.response.FromString)
        return stub

    def _do(self, step: Any, stopped: Optional[threading.Event]) -> Any:
        kind = type(step)
        try:
            if kind is core.Call:
                return self._unary(step.method, step.request)(step.request, timeout=step.timeout, metadata=self._metadata)
            if kind is core.Open:
                return self._stub(step.method, "unary_stream")(step.request, metadata=self._metadata)
            if kind is core.Read:
                return next(step.stream, None)
            if kind is core.OpenDuplex:
                if self._closed:
                    raise core.closed()
                return Duplex(self._stub(step.method, "stream_stream"), self._metadata)
        except (grpc.RpcError, ValueError) as error:
            raise self._failure_of(error) from None
        if kind is core.Sleep:
            if stopped is None:
                return time.sleep(step.seconds)
            return stopped.wait(step.seconds)
        if kind is core.Invoke:
            return step.function(step.argument)
        if kind is core.Take:
            return step.duplex.take(step.patience)
        assert kind is core.Next
        return next(step.iterator, core.NOTHING)

    def _steps(self, operation: core.Operation, stopped: Optional[threading.Event] = None) -> Generator[Any, None, Any]:
        """Gives what the operation gives, and returns its value."""
        outcome: Any = None
        failure: Optional[BaseException] = None
        try:
            while True:
                try:
                    step = operation.send(outcome) if failure is None else operation.throw(failure)
                except StopIteration as end:
                    return end.value
                outcome = failure = None
                if type(step) is core.Items:
                    yield from step.items
                    continue
                try:
                    outcome = self._do(step, stopped)
                except Failure as error:
                    failure = error
                if stopped is not None and stopped.is_set():
                    return None
        finally:
            operation.close()

    def run(self, operation: core.Operation, stopped: Optional[threading.Event] = None) -> Any:
        steps = self._steps(operation, stopped)
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        raise AssertionError("a call gives nothing on its way")

    def iterate(self, operation: core.Operation) -> Iterator[Any]:
        return self._steps(operation)

    def iterator(self, each: Any) -> Any:
        return iter(each)

    def background(self, operation: core.Operation) -> Background:
        return Background(self, operation)
