"""What users do besides what is meant: closed and forked clients, several event loops, wrong arguments, slow networks, imports anew."""

import asyncio
import dataclasses
import datetime
import importlib
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import unittest

import strata_documents
from strata_documents import Client, InvalidValue, LeaseLost, StrataError, aio, core, increment, testing


class SlowNetwork:
    """A way to a server that takes `delay` seconds in each direction."""

    def __init__(self, target, delay):
        self._delay, self._cut = delay, False
        host, _, port = target.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._server)
            for ends in ((near, far), (far, near)):
                self._carry(*ends)

    def _carry(self, source, target):
        waiting = queue.Queue()

        def take():
            data = b"begin"
            while data:
                try:
                    data = source.recv(65536)
                except OSError:
                    data = b""
                waiting.put((time.monotonic() + self._delay, data))

        def give():
            while True:
                due, data = waiting.get()
                time.sleep(max(0, due - time.monotonic()))
                try:
                    if not data:
                        return target.shutdown(socket.SHUT_WR)
                    if not self._cut:
                        target.sendall(data)
                except OSError:
                    return
        for work in (take, give):
            threading.Thread(target=work, daemon=True).start()

    def cut(self):
        """From now on what is sent is taken in, and never arrives."""
        self._cut = True

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Uses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = testing.Server()
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.client = Client(self.server.target, retry_for=5)
        self.addCleanup(self.client.close)
        self.documents = self.client.collection(self.id().rpartition(".")[2])

    def assertClosed(self, error, unknown):
        self.assertEqual(("CANCELLED", "the client is closed", unknown), (error.code, error.message, error.outcome_unknown))

    def test_a_closed_client_says_so(self):
        with Client(self.server.target) as client:
            pass
        for call in (lambda: client.collection("c").get("d"), lambda: client.collection("c").create("d", {}),
                     lambda: list(client.collection("c").list()),
                     lambda: next(iter(client.watch())), lambda: list(client.enrollments.apply([{}])), client.close):
            try:
                call()
                self.assertEqual(client.close, call)
            except StrataError as error:
                self.assertClosed(error, False)

        async def work():
            async with aio.Client(self.server.target) as client:
                await client.server_info()
            with self.assertRaises(StrataError) as raised:
                await client.collection("c").create("d", {})
            self.assertClosed(raised.exception, False)
            with self.assertRaises(StrataError) as raised:
                async for _ in client.watch():
                    pass
            self.assertClosed(raised.exception, False)
        asyncio.run(work())

    def test_closing_ends_what_is_under_way(self):
        with self.client.leases.hold("closing", "me", ttl=60):
            client, caught = Client(self.server.target), []
            began = threading.Event()

            def wait():
                began.set()
                try:
                    client.leases.acquire("closing", "you", wait=20)
                except StrataError as error:
                    caught.append(error)
            thread = threading.Thread(target=wait)
            thread.start()
            began.wait()
            # Whether the call was sent yet or not, it ends at once.
            client.close()
            thread.join(20)
            self.assertFalse(thread.is_alive())
            self.assertEqual(("CANCELLED", "the client is closed"), (caught[0].code, caught[0].message))

            async def work():
                async with aio.Client(self.server.target) as client:
                    await client.server_info()
                    task = asyncio.ensure_future(client.leases.acquire("closing", "you", wait=20))
                    await asyncio.sleep(0)
                with self.assertRaises(StrataError) as raised:
                    await asyncio.wait_for(task, 20)
                self.assertEqual("the client is closed", raised.exception.message)
            asyncio.run(work())

    def test_a_cancelled_task_is_cancelled(self):
        async def work():
            async with aio.Client(self.server.target) as client:
                await client.leases.acquire("cancelled", "me", ttl=60)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.leases.acquire("cancelled", "you", wait=20), 0.2)
                self.assertEqual("memory", (await client.server_info()).engine)
        asyncio.run(work())

    def test_a_client_of_asyncio_may_be_made_outside_of_loops_and_used_in_several(self):
        client = aio.Client(self.server.target)

        async def work():
            return (await client.server_info()).engine
        self.assertEqual(["memory", "memory"], [asyncio.run(work()), asyncio.run(work())])

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_child_gives_other_request_ids_and_may_have_a_client(self):
        self.documents.create("d", {"n": 1})
        core.new_request_id()
        code = """
import os, sys
from strata_documents import Client, core
core.new_request_id()
reading, writing = os.pipe()
if os.fork() == 0:
    with Client(sys.argv[1]) as client:
        client.collection(sys.argv[2]).update("d", operations=[__import__("strata_documents").increment("/n", 1)])
    os.write(writing, " ".join(core.new_request_id() for _ in range(40)).encode())
    os._exit(0)
mine = {core.new_request_id() for _ in range(200)}
os.close(writing)
with os.fdopen(reading) as child:
    theirs = child.read().split()
print(len(mine), len(set(theirs)), len(mine & set(theirs)))
"""
        package = os.path.dirname(os.path.dirname(strata_documents.__file__))
        said = subprocess.run([sys.executable, "-c", code, self.server.target, self.documents.name], env=dict(os.environ, PYTHONPATH=package),
                              capture_output=True, text=True, timeout=60)
        self.assertEqual("200 40 0\n", said.stdout, said.stderr)
        self.assertEqual({"n": 2}, self.documents.get("d").content)

    def test_request_ids_are_random_uuids(self):
        ids = [core.new_request_id() for _ in range(1000)]
        self.assertEqual(1000, len(set(ids)))
        for each in ids:
            self.assertRegex(each, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")

    def test_a_client_is_shared_by_threads(self):
        self.documents.create("d", {"n": 0})
        def work():
            for _ in range(20):
                self.documents.update("d", operations=[increment("/n", 1)])
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(160, self.documents.get("d").content["n"])

    def test_what_modify_changes_in_place_has_to_be_returned(self):
        @dataclasses.dataclass(eq=False)
        class Book:
            n: int

        self.documents.create("d", {"n": 1})
        books = self.client.collection(self.documents.name, of=Book)
        for documents, change in ((self.documents, lambda content: content.update(n=2)), (books, lambda book: setattr(book, "n", 2)),
                                  (self.documents, lambda content: content.update(n={1, 2}))):
            with self.assertRaisesRegex(TypeError, "changed the content of 'd' in place and returned nothing"):
                documents.modify("d", change)
        done = books.modify("d", lambda book: None)
        self.assertEqual((False, 1), (done.changed, done.document.content.n))
        self.assertEqual(1, self.documents.get("d").version)

        async def work():
            async with aio.Client(self.server.target) as client:
                async def change(content):
                    content["n"] = 2
                with self.assertRaisesRegex(TypeError, "in place"):
                    await client.collection(self.documents.name).modify("d", change)
        asyncio.run(work())

    def test_a_watch_says_where_to_go_on(self):
        name = self.documents.name
        begin = self.documents.create("before", {}).commit_position
        transaction = self.client.transaction()
        for id in ("a", "b", "c"):
            transaction.create(name, id, {})
        position = transaction.commit().commit_position
        # A watcher that dies again and again: the commit comes again until all of it was given.
        seen, saved = [], begin
        for count in (1, 2, 3):
            watch = self.client.watch(collections=[name], after_position=saved)
            seen += [next(watch).id for _ in range(count)]
            saved = watch.resume_position
            watch.close()
        self.assertEqual(["a", "a", "b", "a", "b", "c"], seen)
        self.assertGreaterEqual(saved, position)
        with self.client.watch(collections=[name], after_position=begin, bookmark_interval=1) as watch:
            for event in watch:
                self.assertEqual(position, event.position)
                if event.id == "c":
                    self.assertGreaterEqual(watch.resume_position, position)
                    break
                self.assertEqual((begin, False), (watch.resume_position, watch.caught_up))
            # Other collections' commits move it on, without events.
            self.client.collection(f"{name}-else").create("d", {})
            threading.Timer(2.5, watch.close).start()
            self.assertEqual([], list(watch))
            self.assertGreater(watch.resume_position, position)
            self.assertTrue(watch.caught_up)

    def test_a_copy_goes_on_from_its_snapshot(self):
        for id in ("a", "b", "c"):
            self.documents.create(id, {})
        with self.documents.watch(snapshot={}) as watch:
            self.assertEqual(["a", "b", "c"], [next(watch).id for _ in range(3)])
            taken = watch.snapshot
            self.assertFalse(watch.caught_up and watch.resume_position is None)
        self.documents.create("d", {})
        with self.documents.watch(snapshot=taken) as watch:
            self.assertEqual("d", next(watch).id)
            self.assertIsNotNone(watch.resume_position)

    def test_a_watch_of_asyncio_says_where_to_go_on_too(self):
        async def work():
            async with aio.Client(self.server.target) as client:
                documents = client.collection(self.documents.name)
                for id in ("a", "b"):
                    await documents.create(id, {})
                ids = []
                async with documents.watch(after_position=0) as watch:
                    async for event in watch:
                        ids.append(event.id)
                        if event.id == "b":
                            self.assertTrue(watch.caught_up)
                            break
                    self.assertEqual(["a", "b"], ids)
                    waiting = asyncio.ensure_future(watch.__anext__())
                    await asyncio.sleep(0.1)
                    # Another task ends it.
                    await watch.close()
                    with self.assertRaises(StopAsyncIteration):
                        await asyncio.wait_for(waiting, 20)
                async with documents.watch() as watch:
                    with self.assertRaises(asyncio.TimeoutError):
                        await asyncio.wait_for(watch.__anext__(), 0.2)
        asyncio.run(work())

    def assertNoServer(self, target, error, began, patience):
        self.assertEqual(("UNAVAILABLE", None, False), (error.code, error.reason, error.outcome_unknown), error)
        self.assertIn(f"no connection to {target}: is stratad running there?", error.message)
        self.assertTrue(patience / 4 < time.monotonic() - began < patience + 4, time.monotonic() - began)

    def test_where_no_server_is_a_call_ends_soon_and_did_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refusing = f"127.0.0.1:{listener.getsockname()[1]}"
        # It takes connections, and says nothing.
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        for target, patience, options in ((refusing, 0.5, {"connect_timeout": 0.5}),
                                          (f"127.0.0.1:{silent.getsockname()[1]}", 1, {"connect_timeout": 1})):
            for call in (lambda client: client.collection("c").create("d", {}), lambda client: client.queues.pop("q"),
                         lambda client: next(client.watch())):
                with Client(target, **options) as client:
                    began = time.monotonic()
                    with self.assertRaises(StrataError) as raised:
                        call(client)
                    # A call that is not repeated ends at once.
                    self.assertNoServer(target, raised.exception, began, 0 if "queues" in call.__code__.co_names else patience)

            async def work():
                async with aio.Client(target, **options) as client:
                    began = time.monotonic()
                    with self.assertRaises(StrataError) as raised:
                        await client.collection("c").create("d", {})
                    self.assertNoServer(target, raised.exception, began, patience)
            asyncio.run(work())

        with Client(refusing) as client:
            began = time.monotonic()
            with self.assertRaises(StrataError) as raised:
                client.collection("c").get("d")
            self.assertNoServer(refusing, raised.exception, began, 3)

    def test_a_connection_that_stood_once_is_waited_for(self):
        server = testing.Server()
        self.addCleanup(server.close)
        with Client(server.target, retry_for=2, connect_timeout=0.1) as client:
            client.server_info()
            server.kill()
            began = time.monotonic()
            with self.assertRaises(StrataError) as raised:
                client.server_info()
            self.assertGreater(time.monotonic() - began, 0.4)
            self.assertNotIn("is stratad running", raised.exception.message)

    def cut_off(self):
        """A client whose way to the server can be cut: what it sends is taken in and never arrives."""
        network = SlowNetwork(self.server.target, 0)
        self.addCleanup(network.close)
        client = Client(network.target)
        self.addCleanup(client.close)
        return client, network

    def test_a_hold_that_is_cut_off_is_lost_in_time(self):
        for on_lost in (None, []):
            client, network = self.cut_off()
            began = time.monotonic()
            hold = client.leases.hold("cut", "one", ttl=1, on_lost=on_lost.append if on_lost is not None else None)
            hold.__enter__()
            time.sleep(1.5)
            self.assertIsNone(hold.lost)
            network.cut()
            began = time.monotonic()
            while hold.lost is None and time.monotonic() - began < 10:
                time.sleep(0.02)
            self.assertLess(time.monotonic() - began, 1.5)
            if on_lost is None:
                with self.assertRaisesRegex(LeaseLost, "lease cut could not be renewed in time"):
                    hold.__exit__(None, None, None)
            else:
                # It is called by itself, and once.
                time.sleep(1)
                self.assertEqual(["lease cut could not be renewed in time"], [error.message for error in on_lost])
                hold.__exit__(None, None, None)
                self.assertEqual(1, len(on_lost))
            self.assertLess(time.monotonic() - began, 3)

    def test_a_hold_is_left_at_once_while_a_renewal_hangs(self):
        client, network = self.cut_off()
        with self.assertRaises(KeyError):
            with client.leases.hold("left", "one", ttl=6):
                network.cut()
                time.sleep(2.5)
                began = time.monotonic()
                raise KeyError("what the block raises goes on")
        self.assertLess(time.monotonic() - began, 4)

    def test_a_hold_whose_lease_was_lost_raises(self):
        with self.assertRaises(LeaseLost):
            with self.client.leases.hold("taken", "one", ttl=1) as hold:
                self.client.leases.release("taken", hold.lease.token)
                time.sleep(0.8)
        with self.assertRaises(KeyError):
            with self.client.leases.hold("taken", "one", ttl=1) as hold:
                self.client.leases.release("taken", hold.lease.token)
                time.sleep(0.8)
                raise KeyError("another")

        async def work():
            async with aio.Client(self.server.target) as client:
                with self.assertRaises(LeaseLost):
                    async with client.leases.hold("taken", "one", ttl=1) as hold:
                        await client.leases.release("taken", hold.lease.token)
                        await asyncio.sleep(0.8)
                lost = asyncio.Event()

                async def on_lost(error):
                    self.assertIsInstance(error, LeaseLost)
                    lost.set()
                async with client.leases.hold("taken", "one", ttl=1, on_lost=on_lost) as hold:
                    await client.leases.release("taken", hold.lease.token)
                    await asyncio.wait_for(lost.wait(), 10)
                async with client.leases.hold("taken", "one", ttl=1) as hold:
                    await asyncio.sleep(1.5)
                    self.assertIsNone(hold.lost)
                self.assertEqual("", (await client.leases.get("taken")).holder)
        asyncio.run(work())

    def test_a_hold_that_waited_counts_from_its_grant(self):
        self.client.leases.acquire("waited", "one", ttl=1)
        with self.client.leases.hold("waited", "two", ttl=1, wait=10) as hold:
            self.assertIsNone(hold.lost)
            # A lease stands for its token in writes; its position is not one to move it to.
            self.documents.create("d", {}, lease=hold.lease)
            self.documents.update("d", replace={"n": 1}, lease=hold.token)
        with self.assertRaises(LeaseLost):
            self.documents.update("d", replace={"n": 2}, lease=hold.lease)

    def test_a_distant_server_is_reached(self):
        network = SlowNetwork(self.server.target, 0.3)
        self.addCleanup(network.close)
        with Client(network.target, retry_for=0) as client:
            self.assertEqual("memory", client.server_info().engine)

    def test_the_package_can_be_imported_anew(self):
        kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "strata_documents"}
        for name in kept:
            del sys.modules[name]
        try:
            anew = importlib.import_module("strata_documents")
            self.assertIsNot(strata_documents, anew)
            with anew.Client(self.server.target) as client:
                self.assertEqual("memory", client.server_info().engine)
        finally:
            sys.modules.update(kept)

    def test_arguments_that_mean_nothing_are_named(self):
        documents, now = self.documents, datetime.datetime.now(datetime.timezone.utc)
        for wrong, kind, said in (
                (lambda: documents.get(5), TypeError, "^id cannot be 5"),
                (lambda: documents.get("d", version="1"), TypeError, "^version cannot be '1'"),
                (lambda: documents.get("d", version=1 << 70), ValueError, "^version cannot be 1180591620717411303424"),
                (lambda: documents.get("d", fields="/a"), TypeError, "^fields cannot be '/a': it is a list"),
                (lambda: documents.get("d", at_time="now"), InvalidValue, "^/at_time: is no datetime"),
                (lambda: documents.get("d", version=1, at_position=10), ValueError, "^at_position cannot go together with version"),
                (lambda: documents.get("d", at_time=now, version=1), ValueError, "^at_time cannot go together with version"),
                (lambda: documents.history("d", from_version=1, from_time=now).__next__(), ValueError, "^from_time cannot go together with"),
                (lambda: documents.history("d", to_version=1, to_time=now).__next__(), ValueError, "^to_time cannot go together with"),
                (lambda: self.client.watch(after_position=1, start_time=now), ValueError, "^start_time cannot go together with after_position"),
                (lambda: documents.watch(start_time=now, snapshot={}), ValueError, "^snapshot cannot go together with start_time"),
                (lambda: self.client.subscriptions.create("s", after_position=1, start_time=now), ValueError, "^start_time cannot go together"),
                (lambda: self.client.queues.schedules.create("q", "s", cron="* * * * *", every=60), ValueError, "^every cannot go together"),
                (lambda: documents.update("d"), ValueError, "needs replace, merge or operations"),
                (lambda: documents.update("d", replace={}, merge={}), ValueError, "replace goes without merge"),
                (lambda: documents.update("d", operations=increment("/n", 1)), TypeError, "^operations cannot be .*: it is a list"),
                (lambda: documents.update("d", operations=["n"]), TypeError, "^an operation is made by set"),
                (lambda: documents.update("d", replace={}, if_version="1"), TypeError, "^if_version cannot be '1'"),
                (lambda: documents.update("d", replace={}, if_version=1, if_exists=False), ValueError, "^at most one of if_version"),
                (lambda: documents.update("d", replace={}, newer=("/n", "1")), TypeError, "^newer is a path and a number"),
                (lambda: documents.create("d", {}, labels={"a": 1}), TypeError, "^labels cannot be .* but a dict of str to str"),
                (lambda: documents.create("d", {"a": {1, 2}}), InvalidValue, "^/a: is of type set"),
                (lambda: documents.create("d", {}, reason="\ud800"), InvalidValue, "^/reason: is not UTF-8"),
                (lambda: self.client.collection("\ud800"), InvalidValue, "^/collection: is not UTF-8"),
                (lambda: self.client.collection(5), TypeError, "^the name of a collection is a str"),
                (lambda: self.client.queues.acknowledge("token"), TypeError, "^tokens cannot be 'token': it is a list"),
                (lambda: self.client.leases.acquire("l", "me", ttl="5"), InvalidValue, "^/ttl: is neither a timedelta nor a number"),
                (lambda: self.client.collections.create("c", strategy="copies"), ValueError, "^strategy is none of STRATEGY_FULL_COPIES"),
                (lambda: Client(timeout=0), ValueError, "^timeout is 0"),
                (lambda: Client(retry_for="5"), TypeError, "^retry_for is a number of seconds"),
                (lambda: Client(actor=5), TypeError, "^actor is a str"), (lambda: Client(tls="ca.pem"), TypeError, "^tls is None, True or Tls"),
                (lambda: Client(token="abc\n"), ValueError, "^the token has other characters"),
                (lambda: Client(token=b"abc"), TypeError, "^a token is a str"),
        ):
            with self.assertRaisesRegex(kind, said):
                wrong()
        self.assertEqual("Client('h:1')", repr(Client("h:1")))


if __name__ == "__main__":
    unittest.main()
