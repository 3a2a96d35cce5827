"""What the cases of clients/conformance do not ask: the example, dataclasses, transactions, leases, queues, subscriptions."""

import asyncio
import contextlib
import io
import pathlib
import re
import time
import unittest
from dataclasses import dataclass, field
from typing import List, Optional

from strata_documents import Client, LeaseHeld, aio, increment, testing

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


@dataclass
class Author:
    name: str


@dataclass
class Book:
    title: str
    authors: List[Author] = field(default_factory=list)
    note: Optional[str] = None


class Surface(unittest.TestCase):
    def setUp(self):
        self.server = testing.Server()
        self.addCleanup(self.server.close)
        self.client = Client(self.server.target)
        self.addCleanup(self.client.close)

    def test_the_example_of_the_readme(self):
        example = re.search("```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S).group(1)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(example.replace("127.0.0.1:50051", self.server.target), "README.md", "exec"), {"__name__": "example"})
        self.assertEqual("another writer was faster: version 2\n2 4 sold\n1 5 delivery\n", said.getvalue())

    def test_contents_are_dataclasses(self):
        books = self.client.collection("books", of=Book)
        book = Book("Moby-Dick", [Author("Melville")])
        self.assertEqual(book, books.create("moby", book).document.content)
        self.assertEqual(book, books.get("moby").content)
        self.assertEqual([book], [found.content for found in books.list()])

    def test_a_transaction(self):
        done = (self.client.transaction().create("a", "x", {"n": 1}).create("b", "y", {"n": 2}).check("a", "none", 0).commit(reason="both"))
        self.assertEqual(["x", "y"], [result.document.id for result in done.results])
        read = self.client.transactions.read([("a", "x"), ("a", "none")])
        self.assertEqual(({"n": 1}, "none"), (read.documents[0].content, read.missing[0].id))

    def test_a_lease_is_held(self):
        with self.client.leases.hold("l", "me", ttl=1) as hold:
            time.sleep(1.5)
            with self.assertRaises(LeaseHeld):
                self.client.leases.acquire("l", "you")
            self.assertIsNone(hold.lost)
            self.client.collection("c").create("d", {}, lease=hold.token)
        self.client.leases.acquire("l", "you")

    def test_a_queue(self):
        self.client.queues.create("q", {"max_tries": 3})
        self.client.queues.push_all("q", [{"payload": {"n": n}} for n in range(20)])
        seen = []
        with self.client.queues.receive("q", credits=5) as messages:
            for message in messages:
                seen.append(message.payload["n"])
                messages.acknowledge(message)
                if len(seen) == 20:
                    break
        self.assertEqual(list(range(20)), sorted(seen))
        self.assertEqual([], list(self.client.queues.messages("q")))

    def test_a_subscription(self):
        self.client.collection("c").create("d", {"n": 1})
        self.client.subscriptions.create("s", collections=["c"], after_position=0, partitions=1)
        with self.client.subscriptions.consume("s", "me", include_content=True) as events:
            for delivery in events:
                self.assertEqual({"n": 1}, delivery.event.version.content)
                events.ack(delivery)
                break
        self.assertEqual(1, self.client.subscriptions.get("s").events_acknowledged)

    def test_ledger_and_server(self):
        self.client.collection("c").create("d", {"n": 1})
        self.assertTrue(list(self.client.collections.verify("c"))[-1].complete)
        self.assertEqual(32, len(self.client.collections.ledger_head().hash))
        self.assertEqual("memory", self.client.server_info().engine)

    def test_asyncio(self):
        async def work():
            async with aio.Client(self.server.target) as client:
                books = client.collection("c")

                async def fn(content):
                    return {"n": (content or {"n": 0})["n"] + 1}

                await asyncio.gather(*[books.modify("d", fn) for _ in range(10)])
                await books.update("d", operations=[increment("/n", 1)])
                self.assertEqual(11, (await books.get("d")).content["n"])
                async with client.leases.hold("l", "me", ttl=5) as hold:
                    await books.create("e", {}, lease=hold.token)
                await client.queues.create("q")
                await client.queues.push("q", {"n": 1})
                async with client.queues.receive("q") as messages:
                    async for message in messages:
                        messages.acknowledge(message)
                        break
                self.assertEqual([], [message async for message in client.queues.messages("q")])
        asyncio.run(work())


if __name__ == "__main__":
    unittest.main()
