#!/usr/bin/python3
"""The server that fails at will: plays the scripts of the cases, as README.md says.

    fake_server.py CASES.json… --descriptors FILE

It takes orders on standard input, one JSON object a line, and answers each with one on standard output.
FILE is a FileDescriptorSet of the protos with all that they import, google/rpc/status.proto and
google/rpc/error_details.proto.
"""

import argparse
import json
import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# Where the script says nothing of a call, and so nothing is right.
_UNEXPECTED = {"status": "INTERNAL", "message": "the script has no answer to this call"}
# Calls that hang keep a thread each until the client gives up.
_THREADS = 64


class Messages:
    """The classes of the protos' messages and the methods of their services."""

    def __init__(self, descriptors):
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)
        # protobuf before 4.22 has no GetMessageClass, protobuf 5 has no GetPrototype.
        self._class = (getattr(message_factory, "GetMessageClass", None) or
                       message_factory.MessageFactory(self._pool).GetPrototype)
        self.methods = {}
        for file in files.file:
            for service in file.service:
                descriptor = self._pool.FindServiceByName(f"{file.package}.{service.name}")
                for method in service.method:
                    found = descriptor.methods_by_name[method.name]
                    self.methods[f"/{descriptor.full_name}/{method.name}"] = (
                        method, self._class_of(found.input_type), self._class_of(found.output_type))

    def _class_of(self, descriptor):
        return self._class(descriptor)

    def named(self, name):
        return self._class_of(self._pool.FindMessageTypeByName(name))

    def details(self, code, step):
        """google.rpc.Status, as the real server puts it into the trailing metadata."""
        status = self.named("google.rpc.Status")(code=code, message=step.get("message", ""))

        def add(message):
            status.details.add(type_url=f"type.googleapis.com/{message.DESCRIPTOR.full_name}",
                               value=message.SerializeToString())

        if "reason" in step:
            add(self.named("google.rpc.ErrorInfo")(
                reason=step["reason"], domain="strata", metadata=step.get("metadata", {})))
        if "retry_delay_ms" in step:
            info = self.named("google.rpc.RetryInfo")()
            seconds, milliseconds = divmod(step["retry_delay_ms"], 1000)
            info.retry_delay.seconds = seconds
            info.retry_delay.nanos = milliseconds * 1_000_000
            add(info)
        return status.SerializeToString()


class Play:
    """One case while it is played: what was asked so far, and what comes next."""

    def __init__(self, case):
        self._script = case.get("script", [])
        self._lock = threading.Lock()
        self._calls = []
        self._problems = []
        self.over = threading.Event()

    def arrived(self, method, request):
        """Notes a call. Answers its record, which a stream adds to, and its step."""
        call = {"method": method, "request": request, "at_ms": round(time.monotonic() * 1000)}
        with self._lock:
            number = len(self._calls)
            self._calls.append(call)
            if number >= len(self._script):
                self._problems.append(f"call {number}, {method}, is one too many")
                return call, _UNEXPECTED
            step = self._script[number]
            if step.get("method", method) != method:
                self._problems.append(f"call {number} is {method}, not {step['method']}")
                return call, _UNEXPECTED
            return call, step

    def problem(self, text):
        with self._lock:
            self._problems.append(text)

    def report(self):
        with self._lock:
            problems = list(self._problems)
            for number in range(len(self._calls), len(self._script)):
                problems.append(f"step {number} of the script was not asked for")
            return {"calls": list(self._calls), "problems": problems}


class Handler(grpc.GenericRpcHandler):
    """Every method of every service."""

    def __init__(self, messages):
        self._messages = messages
        self._play = Play({})

    def begin(self, case):
        self._play.over.set()
        self._play = Play(case)

    def end(self):
        self._play.over.set()
        return self._play.report()

    def service(self, details):
        found = self._messages.methods.get(details.method)
        if found is None:
            return None
        method, request, response = found
        codecs = {"request_deserializer": request.FromString,
                  "response_serializer": response.SerializeToString}
        if method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, context: self._talk(method.name, response, requests, context), **codecs)
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(
                lambda asked, context: self._stream(method.name, response, asked, context), **codecs)
        return grpc.unary_unary_rpc_method_handler(
            lambda asked, context: self._answer(method.name, response, asked, context), **codecs)

    def _answer(self, method, response, request, context):
        play = self._play
        _, step = play.arrived(method, _json(request))
        self._hang_or_fail(play, step, context)
        return self._message(play, response, step.get("answer", {}), context)

    def _stream(self, method, response, request, context):
        play = self._play
        _, step = play.arrived(method, _json(request))
        self._hang_or_fail(play, step, context)
        for answer in step.get("answers", []):
            yield self._message(play, response, answer, context)
        self._end_stream(play, step, context)

    def _talk(self, method, response, requests, context):
        """Streams both ways: an answer for each message, or a list of them, once `read` messages are there."""
        play = self._play
        messages = []
        call, step = play.arrived(method, {"messages": messages})
        answers = step.get("answers", [])
        fails = "status" in step or step.get("hang")
        asked = 0

        def read_to(count):
            nonlocal asked
            while asked < count:
                request = next(requests, None)
                if request is None:
                    return False
                messages.append(_json(request))
                asked += 1
            return True

        read_to(step.get("read", 0))
        if fails:
            self._hang_or_fail(play, step, context)
        for number, answer in enumerate(answers):
            if not read_to(number + 1):
                play.problem(f"{method} ended before its message {number}")
                break
            for each in answer if isinstance(answer, list) else [answer]:
                yield self._message(play, response, each, context)
        if "then" not in step:
            # A server that ends before the client has would lose what is still on its way.
            for request in requests:
                messages.append(_json(request))
        self._end_stream(play, step, context)

    def _end_stream(self, play, step, context):
        if "then" in step:
            self._hang_or_fail(play, step["then"], context)

    def _hang_or_fail(self, play, step, context):
        if step.get("hang"):
            gone = threading.Event()
            if context.add_callback(gone.set):
                while not gone.wait(0.02) and not play.over.is_set():
                    pass
            self._fail({"status": "UNAVAILABLE", "message": "the case is over"}, context)
        if "status" in step:
            self._fail(step, context)

    def _fail(self, step, context):
        code = grpc.StatusCode[step["status"]]
        if "reason" in step or "retry_delay_ms" in step:
            details = self._messages.details(code.value[0], step)
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, step.get("message", ""))

    def _message(self, play, response, answer, context):
        try:
            return json_format.ParseDict(answer, response())
        except json_format.ParseError as error:
            play.problem(f"the script's answer is no {response.DESCRIPTOR.name}: {error}")
            return context.abort(grpc.StatusCode.INTERNAL, "the script is wrong")


def _json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def _cases(files):
    cases = {}
    for file in files:
        with open(file, encoding="utf-8") as text:
            for case in json.load(text):
                if case["name"] in cases:
                    sys.exit(f"{file}: there is another case {case['name']}")
                cases[case["name"]] = case
    return cases


def main():
    parser = argparse.ArgumentParser(description="Plays the scripts of conformance cases.")
    parser.add_argument("cases", nargs="+", help="files of cases")
    parser.add_argument("--descriptors", required=True, help="the protos' FileDescriptorSet")
    arguments = parser.parse_args()
    cases = _cases(arguments.cases)
    with open(arguments.descriptors, "rb") as file:
        handler = Handler(Messages(file.read()))
    server = grpc.server(futures.ThreadPoolExecutor(_THREADS), handlers=(handler,),
                         options=(("grpc.so_reuseport", 0),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def say(words):
        print(json.dumps(words), flush=True)

    say({"port": port})
    for line in sys.stdin:
        order = json.loads(line)
        if "begin" in order:
            case = cases.get(order["begin"])
            if case is None:
                say({"ready": False, "problem": f"there is no case {order['begin']}"})
                continue
            handler.begin(case)
            say({"ready": True})
        else:
            say(handler.end())
    handler.end()
    server.stop(None)


if __name__ == "__main__":
    main()
