"""Fills a server with what the explorer's tests walk through: a bookshop of some months, and what somebody wrote who meant harm.

fill.py TARGET fill VERSIONS: VERSIONS is how many the document sensors/long gets. fill.py TARGET sell BOOK: one sale, as of now.
Needs clients/python on PYTHONPATH.
"""

import datetime
import decimal
import sys
import threading

from strata_documents import Binary, Client, Int64, ObjectId, StrataError, increment, set as put

SCRIPT = "<script>window.hacked = true</script>"
IMAGE = "\"><img src=x onerror=\"window.hacked = true\">"
TITLES = [
    ("alice", "Alice's Adventures in Wonderland", "Lewis Carroll"), ("bleak", "Bleak House", "Charles Dickens"), ("dracula", "Dracula", "Bram Stoker"),
    ("effi", "Effi Briest", "Theodor Fontane"), ("emma", "Emma", "Jane Austen"), ("faust", "Faust", "Johann Wolfgang von Goethe"),
    ("frankenstein", "Frankenstein", "Mary Shelley"), ("germinal", "Germinal", "Émile Zola"), ("hamlet", "Hamlet", "William Shakespeare"),
    ("iliad", "The Iliad", "Homer"), ("ivanhoe", "Ivanhoe", "Walter Scott"), ("jane", "Jane Eyre", "Charlotte Brontë"), ("kim", "Kim", "Rudyard Kipling"),
    ("middlemarch", "Middlemarch", "George Eliot"), ("odyssey", "The Odyssey", "Homer"), ("orlando", "Orlando", "Virginia Woolf"),
    ("persuasion", "Persuasion", "Jane Austen"), ("ulysses", "Ulysses", "James Joyce"), ("vanity", "Vanity Fair", "William Makepeace Thackeray"),
    ("walden", "Walden", "Henry David Thoreau"), ("war", "War and Peace", "Leo Tolstoy"), ("wuthering", "Wuthering Heights", "Emily Brontë"),
]


def books(client):
    shelf = client.collection("books")
    for number, (name, title, author) in enumerate(TITLES):
        shelf.create(name, {"title": title, "author": author, "stock": number % 7, "price": decimal.Decimal("12.50") + number,
                            "tags": ["novel"] if number % 3 else ["novel", "classic"]}, actor="ann", reason="catalogue", labels={"source": "spring list"})
    for name, title, _ in TITLES[:6]:
        shelf.update(name, operations=[increment("/stock", 5)], actor="ben", reason=f"delivery of {title}")
    shelf.create("moby", {"title": "Moby Dick", "author": "Herman Melville", "stock": 3, "price": decimal.Decimal("14.90"), "tags": ["sea", "whale"],
                          "publisher": {"name": "Harper & Brothers", "city": "New York"}}, actor="ann", reason="catalogue", request_id="catalogue-17")
    shelf.update("moby", operations=[increment("/stock", -1)], actor="till", on_behalf_of="customer 4711", reason="sold", labels={"till": "2", "receipt": "2026-11837"})
    shelf.update("moby", operations=[increment("/stock", -1)], actor="till", reason="sold")
    shelf.update("moby", operations=[put("/title", "Moby-Dick; or, The Whale"), put("/publisher/year", 1851)], actor="ann", reason="title as on the first edition's page")
    shelf.update("moby", operations=[increment("/stock", 10), put("/price", decimal.Decimal("15.90"))], actor="ben", reason="delivery", request_id="delivery-2026-44")
    shelf.delete("moby", actor="ben", reason="wrong button")
    shelf.restore("moby", 5, actor="ann", reason="it was not to be deleted")
    shelf.update("moby", merge={"tags": ["sea", "whale", "American"], "publisher": {"city": None}}, actor="ann", reason="tags")
    shelf.update("moby", operations=[increment("/stock", -1)], actor="till", reason="sold")
    shelf.create("pulped", {"title": "Yesterday's Best Seller", "stock": 0}, actor="ann", reason="catalogue")
    shelf.delete("pulped", actor="ben", reason="out of print")
    kinds = client.collection("kinds")
    kinds.create("every", {
        "text": "plain", "empty": "", "long": "All work and no play. " * 120, "small": 7, "large": Int64(9007199254740993), "half": 0.5, "one": 1.0, "money": decimal.Decimal("1.10"),
        "when": datetime.datetime(2026, 1, 31, 12, 0, 0, 123000, datetime.timezone.utc), "yes": True, "nothing": None, "bytes": b"\x00\x01\xff",
        "uuid": Binary(bytes(range(16)), 4), "id": ObjectId("65b9f0c4a1b2c3d4e5f60718"), "list": [1, [2, 3], {"a": {"b": []}}], "object": {}, "a name with spaces": 1, "a.b/c~d": 2,
        "10": "ten", "2": "two", "right to left": "\u202eevil.exe"}, actor="ann", reason="one of each kind")
    wide = {f"member {number:04}": {"value": number, "list": [number, number + 1]} for number in range(1500)}
    kinds.create("wide", wide, actor="import", reason="a document of many members")
    kinds.update("wide", operations=[put("/member 0700/value", -1), put("/member 1400/list/1", "changed")], actor="import", reason="two of them")


def harm(client):
    evil = client.collection(f"evil {SCRIPT}")
    evil.create(f"id {IMAGE}", {"title": SCRIPT, IMAGE: [SCRIPT, {SCRIPT: IMAGE}]}, actor=f"actor {SCRIPT}", on_behalf_of=IMAGE, reason=f"reason {IMAGE}",
                labels={SCRIPT: IMAGE}, request_id="harm-1")
    evil.update(f"id {IMAGE}", merge={"title": IMAGE, "more": SCRIPT}, actor=f"actor {SCRIPT}", reason=f"reason {SCRIPT}")
    client.queues.create(f"queue {SCRIPT}")
    client.queues.push(f"queue {SCRIPT}", {"payload": SCRIPT}, headers={SCRIPT: IMAGE})
    client.leases.acquire(f"lease {SCRIPT}", f"holder {IMAGE}", ttl=datetime.timedelta(hours=1), metadata={SCRIPT: IMAGE})
    client.subscriptions.create(f"subscription {SCRIPT}", collections=[f"evil {SCRIPT}"], after_position=0)
    client.enrollments.enroll(f"student {SCRIPT}", f"class {IMAGE}", 1, reason=SCRIPT)


def university(client):
    number = 1000
    for student, name in [("ada", "Ada"), ("alan", "Alan"), ("grace", "Grace"), ("edsger", "Edsger"), ("barbara", "Barbara")]:
        for lesson in ["CS 101", "Logic", "Number Theory"]:
            number += 1
            client.enrollments.enroll(student, lesson, number, actor="registrar", reason=f"{name} signed up")
    client.enrollments.unenroll("ada", "Logic", 2000, actor="registrar", reason="clashes with her laboratory")
    client.enrollments.unenroll("alan", "Number Theory", 2001, actor="alan", reason="dropped")
    client.enrollments.unenroll("ada", "Ethics", 2002, actor="registrar", reason="arrived before its enrolment")


def transactions(client):
    orders = client.transaction()
    orders.create("orders", "1001", {"book": "emma", "count": 1, "price": decimal.Decimal("16.50")})
    orders.update("books", "emma", operations=[increment("/stock", -1)])
    orders.commit(actor="shop", reason="order 1001", request_id="order-1001")


def held_transaction(target):
    """Where the server is told to hold those in two phases (--hold-transactions-after first-slot), this one stays pending, and the call ends without an outcome."""
    with Client(target, timeout=1, retry_for=0) as client:
        two = client.transaction()
        two.create("orders", "1002", {"book": "kim", "count": 2})
        two.update("books", "kim", operations=[increment("/stock", -2)])
        try:
            two.commit(mode="two_phase", actor="shop", reason="order 1002", request_id="order-1002")
        except StrataError as error:
            print("held:", error, file=sys.stderr)


def queues(client):
    client.queues.create("dead mails")
    client.queues.create("mails", {"max_tries": 3, "history_retention": datetime.timedelta(days=7), "reservation_timeout": datetime.timedelta(hours=1)})
    client.queues.create("invoices", {"max_tries": 1, "dead_letter_queue": "dead mails"})
    client.queues.create("nightly", {"paused": True})
    for number in range(8):
        client.queues.push("mails", {"to": f"customer {4711 + number}", "subject": "Your book has been sent", "order": 1001 + number}, headers={"trace": f"t-{number}"},
                           priority=number % 3, ordering_key="welcome" if number > 5 else None)
    client.queues.push("mails", {"to": "customer 4711", "subject": "How did you like it?"}, delay=datetime.timedelta(days=3))
    taken = client.queues.reserve("mails", count=4)
    client.queues.acknowledge([taken[0].token])
    client.queues.rollback([taken[1].token], reason="the mail server says: 550 no such mailbox", dead=True)
    client.queues.rollback([taken[2].token], reason="the mail server is busy", delay=datetime.timedelta(hours=2))
    client.queues.push("invoices", {"order": 1001, "amount": decimal.Decimal("16.50")})
    client.queues.rollback([client.queues.reserve("invoices")[0].token], reason="no such customer", dead=True)
    client.queues.schedules.create("nightly", "stocktaking", cron="30 2 * * 1-5", message={"payload": {"task": "stocktaking"}})
    client.queues.schedules.create("nightly", "heartbeat", every=datetime.timedelta(hours=1), message={"payload": {"task": "heartbeat"}})


def subscriptions(client):
    client.subscriptions.create("mail on new books", collections=["books"], kinds=["created"], after_position=0, partitions=4, max_attempts=1)
    client.subscriptions.create("search index", after_position=0, partitions=2)
    # One at a time of each partition: what stands behind an event that fails would come again.
    with client.subscriptions.consume("mail on new books", "mailer-1", window=1) as consumer:
        for number, delivery in enumerate(consumer, 1):
            if delivery.event.id in ("emma", "moby"):
                consumer.nack(delivery, f"no template for {delivery.event.id}: missing member \"isbn\"", park=True)
            else:
                consumer.ack(delivery)
            if number == len(TITLES) + 2:
                break
        # Leaving would take back what has not arrived yet.
        while client.subscriptions.get("mail on new books").parked < 2:
            pass
    client.leases.acquire("till 2", "anna on tablet 7", ttl=datetime.timedelta(hours=1), metadata={"address": "10.0.0.17", "shop": "Main Street"})
    released = client.leases.acquire("stocktaking", "ben", ttl=datetime.timedelta(minutes=1))
    client.leases.release("stocktaking", released.token)


def long(target, versions):
    with Client(target, actor="sensor 7") as client:
        sensors = client.collection("sensors")
        sensors.create("long", {"reading": 0}, reason="first reading")
        # The server makes successive versions of updates that wait for one another, so that callers side by side cost little more than one.
        def work(share):
            for number in range(share):
                sensors.update("long", operations=[increment("/reading", 1)], reason=f"reading {number}")
        width = 16
        threads = [threading.Thread(target=work, args=((versions - 1 + index) // width,)) for index in range(width)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def fill(target, versions):
    with Client(target) as client:
        for part in (books, university, transactions, queues, subscriptions):
            part(client)
    held_transaction(target)
    long(target, versions)
    with Client(target) as client:
        harm(client)
        # What is newest is what most views begin with: something harmless.
        sell(client, "odyssey")
        client.collection("books").update("emma", operations=[increment("/stock", -1)], actor="till", on_behalf_of="customer 4712", reason="sold")


def sell(client, book):
    client.collection("books").update(book, operations=[increment("/stock", -1)], actor="till", reason="sold")


def main():
    target, what, argument = sys.argv[1:]
    if what == "fill":
        fill(target, int(argument))
    else:
        with Client(target) as client:
            sell(client, argument)


if __name__ == "__main__":
    main()
