"""Plays the cases of clients/conformance with the synchronous client and with that of asyncio."""

import asyncio
import base64
import dataclasses
import datetime
import glob
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import unittest

import strata_documents
from strata_documents import Client, InvalidValue, StrataError, bson, messages, testing

try:
    from strata_documents import aio
except ImportError:
    aio = None

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent.parent / "conformance"


def special(kind):
    cycle = {}
    cycle["self"] = cycle
    deep = {}
    for _ in range(29):
        deep = {"a": deep}
    return {"nan": math.nan, "infinity": math.inf, "cycle": cycle, "function": special, "zero_byte_name": {"a\0b": 1},
            "bad_utf8": "\ud800", "too_deep": deep, "too_large": "x" * (3 << 20), "int_too_large": 1 << 63}[kind]


def from_json(value):
    if isinstance(value, dict):
        if len(value) == 1:
            name, member = next(iter(value.items()))
            if name == "$special":
                return special(member)
            if name == "$bson_hex":
                return bson.decode(bytes.fromhex(member))
            if name in messages.WRAPPERS:
                return messages.WRAPPERS[name](member)
        return {name: from_json(member) for name, member in value.items()}
    return [from_json(member) for member in value] if isinstance(value, list) else value


CONTENTS = {"content", "payload", "before", "after"}


def problem(expected, actual, path=""):
    """What differs; nothing: `actual` has all that is expected."""
    name = path.rpartition("/")[2]
    if name in CONTENTS:
        if isinstance(expected, dict) and "$bson_hex" in expected:
            same = bson.encode(actual).hex() == expected["$bson_hex"]
        else:
            wanted = from_json(expected)
            if isinstance(wanted, dict):
                same = isinstance(actual, dict) and bson.encode(wanted) == bson.encode(actual)
            else:
                same = bson.encode({"v": wanted}) == bson.encode({"v": actual})
        return None if same else f"{path}: {actual!r}, not {expected!r}"
    if isinstance(expected, dict):
        for key, member in expected.items():
            found = actual.get(key) if isinstance(actual, dict) else getattr(actual, key, None)
            told = problem(member, found, f"{path}/{key}")
            if told:
                return told
        return None
    if isinstance(expected, list):
        if len(actual or []) != len(expected):
            return f"{path}: {len(actual or [])} items, not {len(expected)}: {actual!r}"
        return next((told for n, (e, a) in enumerate(zip(expected, actual)) for told in [problem(e, a, f"{path}/{n}")] if told), None)
    if isinstance(actual, bytes):
        actual = base64.b64encode(actual).decode()
    if isinstance(actual, datetime.datetime):
        expected = datetime.datetime.fromisoformat(expected.replace("Z", "+00:00"))
    if actual is None and not expected:
        return None
    if isinstance(actual, int) and not isinstance(actual, bool) and isinstance(expected, str):
        expected = int(expected)
    return None if actual == expected else f"{path}: {actual!r}, not {expected!r}"


async def result(value):
    return await value if hasattr(value, "__await__") else value


async def played(stream, steps, refused):
    """What the steps of a case take of a stream, and then what was refused."""
    taken = []
    iterator = stream.__aiter__() if hasattr(stream, "__aiter__") else iter(stream)
    try:
        for step in steps:
            if step == "next":
                # Not for ever: a client that waits for what never comes fails.
                following = iterator.__anext__() if hasattr(iterator, "__anext__") else asyncio.to_thread(next, iterator)
                taken.append(await asyncio.wait_for(following, 20))
                continue
            kind, *_ = step
            more = {name: value for name, value in step.items() if name != kind}
            getattr(stream, kind)(taken[step[kind]], **more)
    except Exception as error:
        return taken, error
    finally:
        await result(stream.close())
    return taken + [{"message_id": message.message_id, "error": error} for message, error in refused], None


async def held(leases, args):
    end = time.monotonic() + args.pop("for_ms") / 1000
    hold = leases.hold(**args)
    kind = type(hold)
    await result((kind.__aenter__ if hasattr(kind, "__aenter__") else kind.__enter__)(hold))
    while hold.lost is None and time.monotonic() < end:
        await asyncio.sleep(0.02)
    await result((kind.__aexit__ if hasattr(kind, "__aexit__") else kind.__exit__)(hold, None, None, None))


async def items(iterator, take):
    found = []
    try:
        if hasattr(iterator, "__aiter__"):
            iterator = iterator.__aiter__()
            while take is None or len(found) < take:
                try:
                    found.append(await iterator.__anext__())
                except StopAsyncIteration:
                    break
            await (iterator.aclose() if hasattr(iterator, "aclose") else iterator.close())
        else:
            iterator = iter(iterator)
            found.extend(itertools.islice(iterator, take)) if take is None else [found.append(next(iterator)) for _ in range(take)]
            if hasattr(iterator, "close"):
                iterator.close()
    except Exception as error:
        return found, error
    return found, None


class Player:
    def __init__(self, client, collection):
        self.client, self.collection = client, collection

    def function(self, name, args):
        what, _, pointer = name.partition(":")
        member = pointer[1:]
        times = itertools.count()

        def bump(content):
            content = content or {}
            content[member] = content.get(member, 0) + 1
            return content

        def fn(content):
            if what == "nothing":
                return None
            if what == "in_place":
                content[member] += 1
                return None
            if what == "throw":
                raise KeyError("thrown")
            if what == "conflict_once" and next(times) == 0:
                with Client(self.target) as other:
                    other.collection("c").modify(args["id"], bump)
            return bump(content)
        return fn

    async def do(self, step):
        args = {k: from_json(v) if k in ("content", "replace", "merge", "payload", "filter", "if_matches") else v
                for k, v in step.get("args", {}).items()}
        take, steps = args.pop("take", None), args.pop("steps", None)
        op = step["op"]
        refused = []
        if steps is not None and op == "queues.receive":
            args["refused"] = lambda message, error: refused.append((message, error))
        if "operations" in args:
            args["operations"] = [getattr(strata_documents, name)(*map(from_json, v if isinstance(v, list) else [v]))
                                  for operation in args["operations"] for name, v in operation.items()]
        if "newer" in args:
            args["newer"] = (args["newer"]["path"], int(args["newer"]["value"]))
        if op == "modify":
            args["fn"] = self.function(args["fn"], args)
        if op == "enrollments.apply":
            args = {"each": args["messages"]}
        if op == "leases.hold":
            return await held(self.client.leases, args), None
        if op == "transaction.commit":
            transaction = self.client.transaction()
            for part in args.pop("parts"):
                for kind, members in part.items():
                    members = {k: from_json(v) if k in ("content", "replace", "merge") else v for k, v in members.items()}
                    getattr(transaction, kind)("c", **members)
            return await result(transaction.commit(**args)), None
        parts = op.split(".")
        place = self.client if len(parts) > 1 else self.collection
        for part in parts[:-1] if parts[0] != "client" else []:
            place = getattr(place, part)
        value = getattr(place, parts[-1])(**args)
        if steps is not None:
            return await played(value, steps, refused)
        if hasattr(value, "__iter__") and not isinstance(value, (list, dict)) or hasattr(value, "__aiter__"):
            return await items(value, take)
        return await result(value), None

    async def step(self, step):
        expect = step["expect"]
        try:
            value, error = await self.do(step)
        except Exception as raised:
            value, error = [], raised
        told = await self.judge(expect, value, error)
        return told and f"{step['op']}: {told}"

    async def judge(self, expect, value, error):
        if "refused_at" in expect:
            if not isinstance(error, InvalidValue):
                return f"not refused: {error or value!r}"
            return None if error.path == expect["refused_at"] else f"refused at {error.path}, not {expect['refused_at']}"
        if "list" in expect:
            told = problem(expect["list"], value)
            if told:
                return f"{told} ({error!r})"
        if "error" in expect:
            if error is None:
                return f"no error: {value!r}"
            wanted = dict(expect["error"])
            if "class" in wanted:
                name = type(error).__name__
                kind = wanted.pop("class")
                if name != ("StrataError" if kind == "Error" else kind):
                    return f"class {name}, not {kind}"
            if "retry_delay_ms" in wanted:
                if error.retry_delay != datetime.timedelta(milliseconds=wanted.pop("retry_delay_ms")):
                    return f"retry_delay {error.retry_delay}"
            if "reason" in wanted and wanted["reason"] is None and error.reason is not None:
                return f"reason {error.reason}"
            return problem({k: v for k, v in wanted.items() if v is not None}, error)
        if error is not None:
            return f"{error!r}"
        if "missing" in expect:
            return None if value is None else f"not missing: {value!r}"
        return problem(expect.get("part", expect.get("value", {})), value)


def same_part(expected, actual, path=""):
    if isinstance(expected, dict):
        return next((told for k, v in expected.items()
                     for told in [same_part(v, (actual or {}).get(k), f"{path}/{k}")] if told), None)
    if isinstance(expected, list):
        if len(actual or []) != len(expected):
            return f"{path}: {actual!r}, not {expected!r}"
        return next((told for n, v in enumerate(expected) for told in [same_part(v, actual[n], f"{path}/{n}")] if told), None)
    if actual is None and expected in (0, "0", "", False):
        return None
    return None if str(actual) == str(expected) else f"{path}: {actual!r}, not {expected!r}"


class Conformance(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        files = sorted(glob.glob(str(CASES / "*.json")))
        cls.cases = [case for file in files for case in json.loads(pathlib.Path(file).read_text(encoding="utf-8"))]
        descriptors = pathlib.Path(messages.__file__).parent / "descriptors.bin"
        cls.fake = subprocess.Popen([sys.executable, str(CASES / "fake_server.py"), *files, "--descriptors", str(descriptors)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.port = json.loads(cls.fake.stdout.readline())["port"]

    @classmethod
    def tearDownClass(cls):
        cls.fake.stdin.close()
        cls.fake.wait()
        cls.fake.stdout.close()

    def order(self, **order):
        self.fake.stdin.write(json.dumps(order) + "\n")
        self.fake.stdin.flush()
        return json.loads(self.fake.stdout.readline())

    async def play(self, case, kind):
        scripted = case["server"] == "scripted"
        made = case.get("client", {})
        real = None if scripted else testing.Server()
        target = f"127.0.0.1:{self.port}" if real is None else real.target
        client = kind(target, timeout=made.get("timeout_ms", 30000) / 1000, retry_for=made.get("retry_for_ms", 30000) / 1000,
                      actor=made.get("actor"))
        try:
            if scripted:
                self.assertTrue(self.order(begin=case["name"])["ready"])
            else:
                with Client(target) as other:
                    other.collections.create("c")
            player = Player(client, client.collection("c"))
            player.target = target
            told = [told for told in [await player.step(step) for step in case["do"]] if told]
        finally:
            await result(client.close())
            if real is not None:
                real.kill()
        if scripted:
            report = self.order(end=True)
            told += report["problems"]
            calls = report["calls"]
            if "calls" in case and len(calls) != len(case["calls"]):
                told.append(f"{len(calls)} calls: {[call['method'] for call in calls]}")
            for n, (wanted, call) in enumerate(zip(case.get("calls", []), calls)):
                if wanted["method"] != call["method"]:
                    told.append(f"call {n} is {call['method']}")
                told.append(same_part(wanted.get("request", {}), call["request"], f"call {n}"))
            identities = [[call["request"].get("request_id") or (call["request"].get("messages") or [{}])[0].get("request_id")
                           for call in calls][n] for group in case.get("same_request_id", []) for n in group if n < len(calls)]
            at = 0
            seen = []
            for group in case.get("same_request_id", []):
                ids = set(identities[at:at + len(group)])
                at += len(group)
                if len(ids) != 1 or None in ids or ids & set(seen):
                    told.append(f"request ids of {group}: {ids}, before {seen}")
                seen += ids
            for n, bounds in enumerate(case.get("gaps_ms", [])):
                if bounds is not None and n + 1 < len(calls):
                    least, most = bounds
                    gap = calls[n + 1]["at_ms"] - calls[n]["at_ms"]
                    if not least <= gap <= most:
                        told.append(f"gap {n} is {gap} ms, not {least} to {most}")
        return [t for t in told if t]

    async def all(self, kind):
        pattern = os.environ.get("CASE", "")
        for case in self.cases:
            if pattern in case["name"] and "python" not in case.get("except", {}):
                with self.subTest(case["name"]):
                    self.assertEqual([], await self.play(case, kind))

    def test_synchronous(self):
        asyncio.run(self.all(Client))

    @unittest.skipIf(aio is None, "asyncio's client is not there")
    def test_asyncio(self):
        asyncio.run(self.all(aio.Client))


if __name__ == "__main__":
    unittest.main()
