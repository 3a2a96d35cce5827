#!/usr/bin/python3
"""What a call costs beside the raw stub: `bench.py [ROUNDS]`, with STRATAD in the environment.

The raw stub is what grpcio gives, over a channel with its defaults: the request message is made for each call, with a deadline and, of a
write, a random request id; its content is BSON that was made once, and the answer is parsed into its message, whose content is not looked
at. The client does all of that, and reads and writes plain values. Rounds of both take turns in one process, at 1 and 64 in flight (threads or
tasks); what is told is the median of the rounds' ratios, and the quartiles, which say how much else the machine did.
"""

import asyncio
import statistics
import sys
import threading
import time
import uuid

import grpc
import grpc.aio

from strata_documents import Client, aio, bson, messages, testing

# Of a round, which is short, so that what else the machine does meets both of a pair.
CALLS = 256
CONTENT = {"title": "Moby-Dick", "stock": 3, "tags": ["whale", "sea"], "price": 12.5}
CONTENT_BSON = bson.encode(CONTENT)
GET, UPDATE = messages.METHODS["Get"], messages.METHODS["Update"]


def get():
    return GET.request(collection="c", id="d", encoding=2)


def update():
    # Equal contents: the server answers without a write, which would hide the client's part.
    made = UPDATE.request(collection="c", id="d", encoding=2, request_id=str(uuid.uuid4()))
    made.replace.bson = CONTENT_BSON
    return made


def calls(channel, collection):
    """Pairs of the client's call and the stub's, by name."""
    raw_get, raw_update = (channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
                           for method in (GET, UPDATE))
    return {"get": (lambda: collection.get("d"), lambda: raw_get(get(), timeout=30)),
            "update": (lambda: collection.update("d", replace=CONTENT), lambda: raw_update(update(), timeout=30))}


def in_threads(pair, width, count):
    """Rounds of the two in `width` threads: how long a call took in each."""
    meet = threading.Barrier(width + 1)
    each = CALLS // width

    def work():
        for _ in range(count):
            for call in pair:
                meet.wait()
                for _ in range(each):
                    call()
                meet.wait()

    def timed():
        meet.wait()
        began = time.perf_counter()
        meet.wait()
        return (time.perf_counter() - began) / (each * width)

    workers = [threading.Thread(target=work) for _ in range(width)]
    for worker in workers:
        worker.start()
    rounds = [(timed(), timed()) for _ in range(count)]
    for worker in workers:
        worker.join()
    return rounds


async def in_tasks(pair, width, count):
    """The same in `width` tasks."""
    each = CALLS // width

    async def work(call):
        for _ in range(each):
            await call()

    async def timed(call):
        began = time.perf_counter()
        await asyncio.gather(*[work(call) for _ in range(width)])
        return (time.perf_counter() - began) / (each * width)

    return [(await timed(pair[0]), await timed(pair[1])) for _ in range(count)]


def tell(kind, name, width, rounds):
    ours, raw = (statistics.median(each[n] for each in rounds) * 1e6 for n in (0, 1))
    low, middle, high = (100 * (ratio - 1) for ratio in statistics.quantiles([a / b for a, b in rounds], n=4))
    print(f"{kind:12} {name:7} {width:3} in flight: client {ours:4.0f} us, stub {raw:4.0f} us, overhead {middle:+.0f} % "
          f"({low:+.0f} to {high:+.0f})", flush=True)


async def asynchronous(target, count):
    async with aio.Client(target) as client, grpc.aio.insecure_channel(target) as channel:
        for name, pair in calls(channel, client.collection("c")).items():
            for width in (1, 64):
                tell("asyncio", name, width, await in_tasks(pair, width, count))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with testing.Server() as server:
        with Client(server.target) as client, grpc.insecure_channel(server.target) as channel:
            client.collection("c").create("d", CONTENT)
            for name, pair in calls(channel, client.collection("c")).items():
                for width in (1, 64):
                    tell("synchronous", name, width, in_threads(pair, width, count))
        asyncio.run(asynchronous(server.target, count))


if __name__ == "__main__":
    main()
