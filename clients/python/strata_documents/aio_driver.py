"""Does what core's operations want done, under asyncio."""

import asyncio
import inspect
import time
from typing import Any, AsyncIterator, Callable, Dict, Optional, Union

import grpc
import grpc.aio

from . import core, messages
from .core import Failure
from .driver import Tls, channel_arguments, failure_of


def is_cancelled() -> bool:
    """Whether the task was cancelled, which then ends as such. Before Python 3.11 no task says so."""
    task = asyncio.current_task()
    return task is not None and hasattr(task, "cancelling") and bool(task.cancelling())


class Stream:
    """A stream of answers. One that is given up fails like others, where gRPC ends the task that reads it."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._given_up = False

    async def read(self) -> Any:
        try:
            answer = await self._call.read()
        except asyncio.CancelledError:
            if not self._given_up or is_cancelled():
                raise
            raise Failure("CANCELLED", "the stream was given up", ()) from None
        return None if answer is grpc.aio.EOF else answer

    def cancel(self) -> None:
        self._given_up = True
        self._call.cancel()


class Duplex:
    """A stream both ways. Sending never waits; a task takes what comes."""

    def __init__(self, stub: Any, metadata: Any) -> None:
        self._outgoing: "asyncio.Queue[Any]" = asyncio.Queue()
        self._incoming: "asyncio.Queue[Any]" = asyncio.Queue()
        self._call = stub(self._requests(), metadata=metadata)
        self._reader = asyncio.ensure_future(self._read())

    async def _requests(self) -> AsyncIterator[Any]:
        while True:
            message = await self._outgoing.get()
            if message is None:
                return
            yield message

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                self._incoming.put_nowait(answer)
            self._incoming.put_nowait(None)
        except grpc.RpcError as error:
            self._incoming.put_nowait(failure_of(error))
        except asyncio.CancelledError:
            self._incoming.put_nowait(None)
        self._outgoing.put_nowait(None)

    def send(self, message: Any) -> None:
        self._outgoing.put_nowait(message)

    def finish(self) -> None:
        self._outgoing.put_nowait(None)

    def cancel(self) -> None:
        self._outgoing.put_nowait(None)
        self._call.cancel()

    async def take(self, patience: Optional[float]) -> Any:
        try:
            if patience == 0:
                # What has come is seen only after the loop went round.
                await asyncio.sleep(0)
                found = self._incoming.get_nowait()
            else:
                found = await asyncio.wait_for(self._incoming.get(), patience)
        except (asyncio.QueueEmpty, asyncio.TimeoutError):
            return core.NOTHING
        if found is None or isinstance(found, Failure):
            # Whoever else takes is told of the end too.
            self._incoming.put_nowait(found)
        if isinstance(found, Failure):
            raise found
        return found


class Background:
    """An operation in a task of its own, until it is stopped."""

    def __init__(self, connection: "Connection", operation: core.Operation) -> None:
        self._task = asyncio.ensure_future(connection.run(operation))

    def stop(self) -> core.Operation:
        self._task.cancel()
        yield core.Invoke(self._ended, None)

    async def _ended(self, _: Any) -> None:
        await asyncio.wait([self._task])


class Connection:
    """A channel, and the driver of operations over it."""

    def __init__(self, target: str, tls: Union[None, bool, Tls], token: Optional[str], settings: core.Settings) -> None:
        address, credentials, options, self._metadata = channel_arguments(target, tls, token, settings.connect_timeout)
        self.settings = settings
        # Opened by the first call: a channel belongs to an event loop, and a client may be made before there is one, or outlive one.
        self._open = ((lambda: grpc.aio.insecure_channel(address, options)) if credentials is None
                      else (lambda: grpc.aio.secure_channel(address, credentials, options)))
        self._channel: Optional[grpc.aio.Channel] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._stubs: Dict[str, Callable[..., Any]] = {}
        self._bytes_stubs: Dict[str, Callable[..., Any]] = {}
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        if self._channel is not None and self._loop is asyncio.get_running_loop():
            await self._channel.close()

    async def call(self, method: messages.Method, request: Any, timeout: Optional[float] = None, request_id: Optional[str] = None) -> Any:
        """Calls, and again as the rules say: what Settings.call does, without a driver as long as nothing fails.

        A request that is bytes is sent as it is; `request_id` is what it has as such.
        """
        began = time.monotonic()
        timeout = timeout or self.settings.timeout
        try:
            stub = self._unary(method, request)
            answer = await stub(request, timeout=timeout, metadata=self._metadata)
            self.settings.connected = True
            return answer
        except Failure as error:
            failure = error
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.CancelledError) as error:
            failure = self._failure_of(error)
        return await self.run(self.settings.again(method, request, timeout, began, failure, request_id))

    def _unary(self, method: messages.Method, request: Any) -> Any:
        if type(request) is not bytes:
            return self._stub(method, "unary_unary")
        self._attach()
        stub = self._bytes_stubs.get(method.path)
        if stub is None:
            stub = self._bytes_stubs[method.path] = self._channel.unary_unary(method.path, None, method.response.FromString)
        return stub

    def _attach(self) -> None:
        """Opens the channel of the event loop that runs."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._closed:
                raise core.closed()
            self._stubs, self._bytes_stubs, self._channel, self._loop = {}, {}, self._open(), loop

    def _failure_of(self, error: BaseException) -> Failure:
        """What gRPC says of a call; where the channel is closed, a UsageError, and CancelledError of calls that were under way."""
        if isinstance(error, grpc.RpcError):
            return failure_of(error)
        if not self._closed or is_cancelled():
            raise error
        return core.closed(sent=isinstance(error, asyncio.CancelledError))

    def _stub(self, method: messages.Method, kind: str) -> Any:
        self._attach()
        stub = self._stubs.get(method.path)
        if stub is None:
            stub = self._stubs[method.path] = getattr(self._channel, kind)(
                method.path, method.request.SerializeToString, method.response.FromString)
        return stub

    async def _do(self, step: Any) -> Any:
        kind = type(step)
        try:
            if kind is core.Call:
                return await self._unary(step.method, step.request)(step.request, timeout=step.timeout, metadata=self._metadata)
            if kind is core.Open:
                return Stream(self._stub(step.method, "unary_stream")(step.request, metadata=self._metadata))
            if kind is core.Read:
                return await step.stream.read()
            if kind is core.OpenDuplex:
                return Duplex(self._stub(step.method, "stream_stream"), self._metadata)
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.CancelledError) as error:
            raise self._failure_of(error) from None
        if kind is core.Sleep:
            return await asyncio.sleep(step.seconds)
        if kind is core.Invoke:
            value = step.function(step.argument)
            return await value if inspect.isawaitable(value) else value
        if kind is core.Take:
            return await step.duplex.take(step.patience)
        assert kind is core.Next
        if hasattr(step.iterator, "__anext__"):
            try:
                return await step.iterator.__anext__()
            except StopAsyncIteration:
                return core.NOTHING
        return next(step.iterator, core.NOTHING)

    async def run(self, operation: core.Operation) -> Any:
        outcome: Any = None
        failure: Optional[BaseException] = None
        try:
            while True:
                try:
                    step = operation.send(outcome) if failure is None else operation.throw(failure)
                except StopIteration as end:
                    return end.value
                outcome = failure = None
                try:
                    outcome = await self._do(step)
                except Failure as error:
                    failure = error
        finally:
            operation.close()

    async def iterate(self, operation: core.Operation) -> AsyncIterator[Any]:
        outcome: Any = None
        failure: Optional[BaseException] = None
        try:
            while True:
                try:
                    step = operation.send(outcome) if failure is None else operation.throw(failure)
                except StopIteration:
                    return
                outcome = failure = None
                if type(step) is core.Items:
                    for item in step.items:
                        yield item
                    continue
                try:
                    outcome = await self._do(step)
                except Failure as error:
                    failure = error
        finally:
            operation.close()

    def iterator(self, each: Any) -> Any:
        return each.__aiter__() if hasattr(each, "__aiter__") else iter(each)

    def background(self, operation: core.Operation) -> Background:
        return Background(self, operation)
