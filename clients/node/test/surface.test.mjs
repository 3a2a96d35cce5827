// Each part of the surface once against a server, and what has no case in clients/conformance: leases that are held, receivers and
// consumers over a restart, back pressure, cancelling.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { inspect } from "node:util";

import { AbortError, Client, CollectionExists, Decimal128, LeaseHeld, LeaseLost, ObjectId, StrataError, Time, VersionConflict, classes, increment } from "strata-documents";
import { Server } from "strata-documents/testing";

import { LastingServer, sleep } from "./servers.mjs";

let server;
let client;

before(async () => {
  server = await Server.start();
  client = new Client({ target: server.target, actor: "ann" });
});

after(async () => {
  client?.close();
  await server?.stop();
});

const all = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

const take = async (iterable, count) => {
  const items = [];
  for await (const item of iterable) if (items.push(item) === count) break;
  return items;
};

test("the server tells what it is", async () => {
  const info = await client.serverInfo();
  assert.equal(info.engine, "memory");
  assert.equal(info.limits.documentDepth, 24);
  assert.ok(info.startTime instanceof Time);
  assert.ok(info.services.includes("strata.v1.DocumentService"));
});

test("targets and options that mean nothing are refused", () => {
  for (const options of [{ target: "http://h:1" }, { target: "h:99999" }, { target: "h:p" }, { target: "h", token: "t" }, { tymeout: 1 }, { timeout: 0 }, { target: 5 }, { tls: "ca.pem" }, { token: Buffer.from("t") }]) {
    assert.throws(() => new Client(options), TypeError, JSON.stringify(options));
  }
  for (const target of ["h", "h:1", "[::1]:2", "127.0.0.1"]) new Client({ target }).close();
});

test("whoever prints a client does not print its token", async () => {
  const secret = new Client({ target: server.target, token: "sesame-0123456789" });
  for (const text of [inspect(secret, { depth: 9, showHidden: true }), JSON.stringify(secret, (_, value) => (typeof value === "bigint" ? "" : value))]) {
    assert.ok(!text.includes("sesame"), text);
  }
  secret.close();
});

test("what modify changes in place has to be returned", async () => {
  const documents = client.collection("left");
  await documents.create("d", { n: 1 });
  const changes = [
    (content) => {
      content.n = 2;
    },
    async (content) => {
      content.n = () => 2;
    },
  ];
  for (const change of changes) {
    await assert.rejects(documents.modify("d", change), { name: "TypeError", message: /changed the content of "d" in place and returned nothing/ });
  }
  const done = await documents.modify("d", () => undefined);
  assert.deepEqual([done.changed, done.document.content, done.document.version], [false, { n: 1 }, 1n]);
  await assert.rejects(documents.update("d"), /a change needs replace, merge or operations/);
  await assert.rejects(documents.modify("d"), /modify needs a function/);
});

test("there is a class for each reason", () => {
  assert.ok(Object.keys(classes).length >= 64);
  for (const [reason, type] of Object.entries(classes)) {
    const error = new type({ code: 10, reason, message: "m", metadata: {} });
    assert.ok(error instanceof StrataError && error instanceof Error, reason);
    assert.equal(error.name, type.name);
  }
});

test("documents: written, changed, deleted, restored, compared, found in the past", async () => {
  const books = client.collection("books");
  const written = await books.create("moby", { stock: 3, isbn: 2n ** 60n });
  assert.equal(written.document.version, 1n);
  await books.update("moby", { operations: [increment("/stock", -1)] }, { reason: "sold", labels: { till: "4" } });
  await assert.rejects(books.update("moby", { merge: { stock: 0 } }, { ifVersion: 1 }), VersionConflict);
  const deleted = await books.delete("moby", { ifVersion: 2 });
  assert.equal(await books.get("moby"), undefined);
  // To the microsecond: a Date would find the version before.
  assert.deepEqual((await books.get("moby", { version: 2 })).content, { stock: 2, isbn: 2n ** 60n });
  const second = (await all(books.history("moby", { oldestFirst: true })))[1];
  assert.equal((await books.get("moby", { atTime: second.commitTime })).version, 2n);
  assert.equal((await books.get("moby", { atPosition: written.commitPosition })).version, 1n);
  assert.equal((await books.restore("moby", 1)).document.version, deleted.document.version + 1n);
  assert.deepEqual((await all(books.diff("moby", 1, 2))).map(({ path, before, after }) => [path, before, after]), [["/stock", 3, 2]]);
  assert.deepEqual((await all(books.audit({ newestFirst: true }))).map(({ version }) => version.kind), ["RESTORED", "DELETED", "UPDATED", "CREATED"]);
  const { documents, missingIds } = await books.batchGet(["none", "moby"]);
  assert.deepEqual([documents.length, missingIds], [1, ["none"]]);
});

test("filters carry what JSON cannot", async () => {
  const values = client.collection("values");
  await values.create("a", { n: 2n ** 60n + 1n, at: new Date(5), b: new Uint8Array([1]) });
  await values.create("b", { n: 1, at: new Date(6), b: new Uint8Array([2]) });
  for (const filter of [{ n: 2n ** 60n + 1n }, { at: new Date(5) }, { b: new Uint8Array([1]) }, { at: { $lt: new Date(6) } }]) {
    assert.deepEqual((await all(values.list({ filter }))).map(({ id }) => id), ["a"]);
  }
  await assert.rejects(all(values.list({ filter: { n: NaN } })), { name: "InvalidValue", path: "/n" });
  await assert.rejects(all(values.list({ filter: new Map([["n", () => 1]]) })), { name: "InvalidValue", path: "/n" });
});

test("int64 as Long, and objects as Maps, if that is wanted", async () => {
  const other = new Client({ target: server.target, int64: "long", ordered: true });
  const values = other.collection("ordered");
  await values.create("a", new Map([["b", 7n], ["1", 2]]));
  const { content } = await values.get("a");
  assert.deepEqual([...content.keys()], ["b", "1"]);
  assert.equal(content.get("b").toString(), "7");
  assert.equal(content.get("b").constructor.name, "Long");
  other.close();
});

test("collections: made, listed, proven, deleted", async () => {
  const made = await client.collections.create("proofs", { strategy: "FULL_COPIES" });
  await assert.rejects(client.collections.create("proofs"), CollectionExists);
  for (let i = 0; i < 5; i++) await client.collection("proofs").create(`d${i}`, { i });
  assert.equal((await client.collections.get("proofs")).strategy, "FULL_COPIES");
  assert.ok((await all(client.collections.list({ pageSize: 1 }))).some(({ name }) => name === "proofs"));
  const head = await client.collections.ledgerHead();
  const progress = await all(client.collections.verify("proofs", { expectHead: head }));
  assert.equal(progress.at(-1).complete, true);
  assert.equal(progress.at(-1).documents, 5n);
  assert.deepEqual(await client.collections.delete("proofs", { force: true, incarnation: made.incarnation }), { replayed: false });
});

test("enrollments: in any order, one by one and as a stream that is not read ahead", async () => {
  const { enrollments } = client;
  assert.equal((await enrollments.enroll("s1", "math", 2)).result, "APPLIED");
  assert.equal((await enrollments.unenroll("s1", "math", 1)).result, "SUPERSEDED");
  assert.deepEqual((await enrollments.get("s1")).enrollments.map(({ className }) => className), ["math"]);
  let asked = 0;
  const messages = async function* () {
    for (let i = 0; i < 5000; i++) {
      asked++;
      yield { operation: "ENROLL", studentId: `t${i % 50}`, className: `c${i % 7}`, sequenceNumber: i + 1 };
    }
  };
  let answered = 0;
  for await (const result of enrollments.apply(messages())) {
    assert.equal(result.error, undefined);
    answered++;
    if (answered === 1) await sleep(200);
    assert.ok(asked - answered <= 1001, `${asked} asked for, ${answered} answered`);
  }
  assert.equal(answered, 5000);
  assert.equal((await all(enrollments.roster("c1", { pageSize: 7 }))).length, 50);
  assert.ok((await enrollments.purgeTombstones(1)).examined >= 50n);
});

test("what a producer of messages throws ends the stream", async () => {
  const messages = async function* () {
    yield { operation: "ENROLL", studentId: "u", className: "c", sequenceNumber: 1 };
    throw new RangeError("no more");
  };
  await assert.rejects(all(client.enrollments.apply(messages())), RangeError);
});

test("leases: held while the work runs, fenced, lost", async () => {
  const { leases } = client;
  let seen;
  await leases.hold("job", "w1", async (held) => {
    seen = held.lease.token;
    await assert.rejects(leases.acquire("job", "w2"), LeaseHeld);
    // Longer than the ttl: it is renewed meanwhile.
    await sleep(1600);
    assert.equal(held.signal.aborted, false);
    await client.collection("jobs").create("a", { done: true }, { lease: held.token });
  }, { ttl: 1000 });
  const next = await leases.acquire("job", "w2", { ttl: 60_000 });
  assert.ok(next.token > seen);
  await leases.release("job", next.token);
  const lose = async (held) => {
    await leases.release("job", held.lease.token);
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve, { once: true }));
    return "done";
  };
  await assert.rejects(leases.hold("job", "w3", lose, { ttl: 1000 }), LeaseLost);
  const losses = [];
  assert.equal(await leases.hold("job", "w3", lose, { ttl: 1000, onLost: (error) => losses.push(error) }), "done");
  assert.ok(losses.length === 1 && losses[0] instanceof LeaseLost);
  assert.ok((await all(leases.list({ prefix: "jo" }))).length === 1);
});

test("leases: lost in time where the network is cut, and left at once", async () => {
  let cut = false;
  const sockets = [];
  const [host, port] = server.target.split(":");
  const network = createServer((near) => {
    const far = connect(Number(port), host);
    sockets.push(near, far);
    // What is sent after the cut is taken in, and never arrives.
    near.on("data", (data) => cut || far.write(data)).on("error", () => {});
    far.on("data", (data) => cut || near.write(data)).on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(network, "listening");
  const client = new Client({ target: `127.0.0.1:${network.address().port}` });
  let began;
  const lost = client.leases.hold("cut", "one", async (held) => {
    await sleep(1500);
    assert.ok(!held.signal.aborted);
    cut = true;
    began = performance.now();
    await once(held.signal, "abort");
    assert.ok(performance.now() - began < 1500);
  }, { ttl: 1000 });
  await assert.rejects(lost, { name: "LeaseLost", message: /could not be renewed in time/ });
  assert.ok(performance.now() - began < 2000);
  cut = false;
  await client.leases.hold("left", "one", async (held) => {
    await client.collection("jobs").create("b", {}, { lease: held.lease });
    cut = true;
    await sleep(2500);
    began = performance.now();
  }, { ttl: 6000 });
  assert.ok(performance.now() - began < 4500);
  client.close();
  for (const socket of sockets) socket.destroy();
  network.close();
});

test("queues: pushed, reserved, given back, finished, received, scheduled", async () => {
  const { queues } = client;
  await queues.create("mail", { reservationTimeout: 30_000 });
  const first = await queues.push("mail", { payload: { to: "bob", n: 2n ** 60n }, headers: { a: "b" }, requestId: "one" });
  assert.equal((await queues.push("mail", { payload: { to: "bob", n: 2n ** 60n }, headers: { a: "b" }, requestId: "one" })).replayed, true);
  const [message] = await queues.reserve("mail");
  assert.deepEqual([message.messageId, message.payload], [first.messageId, { to: "bob", n: 2n ** 60n }]);
  assert.equal((await queues.rollback(message.token, { notCounted: true }))[0].error, undefined);
  await queues.push("mail", Array.from({ length: 20 }, (_, i) => ({ payload: { i } })));
  const receiver = queues.receive("mail", { credits: 4 });
  let count = 0;
  for await (const each of receiver) {
    assert.equal((await receiver.acknowledge(each)).error, undefined);
    if (++count === 21) break;
  }
  assert.deepEqual(await queues.pop("mail"), []);
  assert.equal((await queues.update("mail", { paused: true })).settings.paused, true);
  assert.equal((await queues.schedules.create("mail", "daily", { cron: "0 6 * * *", message: { payload: { a: 1 } } })).cron, "0 6 * * *");
  assert.equal((await all(queues.schedules.list("mail"))).length, 1);
  await queues.schedules.delete("mail", "daily");
  await queues.delete("mail", { force: true });
});

test("a watch gives what happens, and ends when it is told to", async () => {
  const watched = client.collection("watched");
  await watched.create("a", { n: 1 });
  const controller = new AbortController();
  const watch = client.watch({ collections: ["watched"], afterPosition: 0, includeContent: true, signal: controller.signal });
  const seen = [];
  const done = (async () => {
    for await (const { event } of watch) {
      seen.push([event.id, event.version.kind, event.version.content]);
      if (seen.length === 2) controller.abort();
    }
  })();
  await watched.update("a", { replace: { n: 2 } });
  await assert.rejects(done, AbortError);
  assert.deepEqual(seen, [["a", "CREATED", { n: 1 }], ["a", "UPDATED", { n: 2 }]]);
  assert.deepEqual((await take(client.watch({ collections: ["watched"], snapshot: {} }), 1)).map(({ document }) => document.content), [{ n: 2 }]);
});

test("a watch says where another goes on", async () => {
  const commits = client.collection("commits");
  const { commitPosition: begin } = await commits.create("before", {});
  const { commitPosition } = await client.transaction().create("commits", "a", {}).create("commits", "b", {}).create("commits", "c", {}).commit();
  // A watcher that dies again and again: the commit comes again until all of it was given.
  const seen = [];
  let saved = begin;
  for (const count of [1, 2, 3]) {
    const watch = commits.watch({ afterPosition: saved });
    seen.push(...(await take(watch, count)).map(({ event }) => event.id));
    saved = watch.resumePosition;
  }
  assert.deepEqual(seen, ["a", "a", "b", "a", "b", "c"]);
  assert.ok(saved >= commitPosition);
  // Other collections' commits move it on, without events; and it can be closed while it waits.
  const watch = commits.watch({ afterPosition: begin, bookmarkInterval: 1000 });
  const ids = [];
  for await (const { event } of watch) {
    assert.equal(watch.caughtUp, event.id === "c");
    if (ids.push(event.id) === 3) {
      await client.collection("commits-else").create("d", {});
      setTimeout(() => watch.close(), 2500);
    }
  }
  assert.deepEqual(ids, ["a", "b", "c"]);
  assert.ok(watch.resumePosition > commitPosition && watch.caughtUp);
});

test("a subscription delivers until it is acknowledged; what failed comes again, and nothing behind it before", async () => {
  const source = client.collection("source");
  await client.subscriptions.create("s", { collections: ["source"], partitions: 1, backoffFirst: 100, backoffMax: 100 });
  for (let i = 0; i < 4; i++) await source.create(`d${i}`, { i });
  const consumer = client.subscriptions.consume("s", "c1", { includeContent: true });
  const seen = [];
  for await (const delivery of consumer) {
    seen.push(`${delivery.event.id}#${delivery.attempt}`);
    if (delivery.event.id === "d1" && delivery.attempt === 1) await consumer.nack(delivery, "not now");
    else await consumer.ack(delivery);
    if (delivery.event.id === "d3") break;
  }
  assert.deepEqual(seen, ["d0#1", "d1#1", "d1#2", "d2#1", "d3#1"]);
  assert.equal((await client.subscriptions.get("s")).subscription.name, "s");
  await client.subscriptions.delete("s");
});

test("each answer can be written as JSON", async () => {
  const values = client.collection("json");
  const content = {
    n: 1, wide: 2n ** 60n, long: 7n, half: 0.5, at: new Date(5), early: new Date(-5), bytes: new Uint8Array([1]), none: null, deep: [{ n: 3n }],
    id: new ObjectId("0123456789abcdef01234567"), price: Decimal128.fromString("1.10"),
  };
  const expected = {
    n: 1, wide: { $numberLong: String(2n ** 60n) }, long: 7, half: 0.5, at: { $date: "1970-01-01T00:00:00.005Z" },
    early: { $date: { $numberLong: "-5" } }, bytes: { $binary: { base64: "AQ==", subType: "00" } }, none: null, deep: [{ n: 3 }],
    id: { $oid: "0123456789abcdef01234567" }, price: { $numberDecimal: "1.10" },
  };
  const json = (answer) => JSON.parse(JSON.stringify(answer));
  const written = await values.create("d", content);
  const document = json(written).document;
  assert.deepEqual([document.version, document.content, document.createTime], [1, expected, written.document.createTime.toISOString()]);
  assert.equal(String(json(written).commitPosition), String(written.commitPosition));
  assert.equal(json({ ...written }.document).version, 1);
  for (const [reading, read] of [[{ int64: "long" }, "long"], [{ ordered: true, wholeDoubles: "double" }, "ordered"]]) {
    const other = new Client({ target: server.target, ...reading });
    assert.deepEqual(json(await other.collection("json").get("d")).content, expected, read);
    other.close();
  }
  const [version] = await all(values.history("d", { includeContent: true, includeChanges: true }));
  assert.deepEqual(json(version).content, expected);
  assert.equal(json(version).contentHash, Buffer.from(version.contentHash).toString("base64"));
  assert.deepEqual(json((await all(values.diff("d", 1, 1)))), []);
  await client.queues.create("json");
  const pushed = await client.queues.push("json", { payload: { n: 2n ** 60n } });
  const [message] = await client.queues.reserve("json");
  assert.deepEqual(json(message).payload, { n: { $numberLong: String(2n ** 60n) } });
  await client.subscriptions.create("json");
  const answers = [
    pushed, await values.modify("d", () => undefined), await values.modify("none", () => undefined), await values.batchGet(["d", "e"]),
    await all(values.list()), await all(values.audit()), await client.serverInfo(), await client.feed(), await client.collections.get("json"),
    await client.collections.ledgerHead(), await all(client.collections.verify("json")), await client.queues.get("json"),
    await client.queues.acknowledge(message.token), await client.subscriptions.get("json"),
    await client.transaction().create("json", "t", {}).commit({ requestId: "json-1" }), await client.transactions.get("json-1"),
    await client.transactions.read([{ collection: "json", id: "d" }, { collection: "json", id: "e" }]), await client.leases.acquire("json", "me"),
    await client.enrollments.enroll("j", "c", 1, { collection: "json-e" }), await client.enrollments.get("j", { collection: "json-e" }),
    await client.enrollments.get("j", { collection: "json-none" }), await client.enrollments.purgeTombstones(1, { collection: "json-e" }),
    await all(client.enrollments.apply([{ operation: "ENROLL", studentId: "j", className: "d", sequenceNumber: 1, collection: "json-e" }])),
    await take(values.watch({ afterPosition: 0, includeContent: true }), 1), await take(values.watch({ snapshot: {} }), 1),
  ];
  for (const answer of answers) assert.doesNotThrow(() => json(answer), JSON.stringify(Object.keys(answer)));
  await client.subscriptions.delete("json");
});

test("transactions: all or nothing", async () => {
  const accounts = client.collection("accounts");
  await accounts.create("a", { balance: 10 });
  await accounts.create("b", { balance: 0 });
  const committed = await client.transaction()
    .update("accounts", "a", { operations: [increment("/balance", -5)] }, { ifMatches: { balance: { $gte: 5 } } })
    .update("accounts", "b", { operations: [increment("/balance", 5)] })
    .check("accounts", "c", 0)
    .commit({ reason: "rent", requestId: "rent-1" });
  assert.deepEqual(committed.results.map(({ document }) => document.content.balance), [5, 5]);
  await assert.rejects(
    client.transaction().update("accounts", "a", { merge: { balance: 0 } }).check("accounts", "b", 1).commit(),
    VersionConflict,
  );
  const { documents, missing } = await client.transactions.read([{ collection: "accounts", id: "a" }, { collection: "accounts", id: "z" }]);
  assert.deepEqual([documents[0].content.balance, missing[0].version], [5, 0n]);
  assert.equal((await client.transactions.get("rent-1")).status, "DONE");
});

test("what belongs to a whole transaction is refused in a part", () => {
  for (const options of [{ requestId: "r" }, { validateOnly: true }, { maxAttempts: 2 }, { omitContent: true }]) {
    const message = new RegExp(`^${Object.keys(options)[0]} belongs to the whole transaction`);
    assert.throws(() => client.transaction().create("c", "d", {}, options), { name: "TypeError", message });
    assert.throws(() => client.transaction().delete("c", "d", options), { name: "TypeError", message });
  }
});

test("where no server is a call ends soon, and did nothing", { timeout: 60_000 }, async () => {
  const sockets = [];
  // It takes connections, and says nothing.
  const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  const closed = createServer().listen(0, "127.0.0.1");
  await Promise.all([once(silent, "listening"), once(closed, "listening")]);
  const refusing = `127.0.0.1:${closed.address().port}`;
  closed.close();
  const calls = [
    (nowhere) => nowhere.collection("c").create("d", {}),
    (nowhere) => all(nowhere.watch()),
    (nowhere) => all(nowhere.queues.receive("q")),
  ];
  const cases = [[refusing, {}, 3000], [refusing, { connectTimeout: 500 }, 500], [`127.0.0.1:${silent.address().port}`, { connectTimeout: 1000 }, 1000]];
  for (const [target, options, patience] of cases) {
    for (const call of patience === 3000 ? calls.slice(0, 1) : calls) {
      const nowhere = new Client({ target, ...options });
      const begun = performance.now();
      const error = await call(nowhere).catch((thrown) => thrown);
      const took = performance.now() - begun;
      assert.deepEqual([error.code, error.reason, error.outcomeUnknown], ["UNAVAILABLE", "", false], String(error));
      assert.ok(error.message.includes(`no connection to ${target}: is stratad running there?`), error.message);
      assert.ok(took > patience / 4 && took < patience + 3000, `${took} ms`);
      nowhere.close();
    }
  }
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test("a connection that stood once is waited for", async () => {
  const other = await Server.start();
  const lasting = new Client({ target: other.target, retryFor: 2000, connectTimeout: 100 });
  await lasting.serverInfo();
  await other.stop("SIGKILL");
  const begun = performance.now();
  const error = await lasting.serverInfo().catch((thrown) => thrown);
  assert.ok(performance.now() - begun > 400);
  assert.ok(!error.message.includes("is stratad running"), error.message);
  lasting.close();
});

test("a signal ends a call", async () => {
  await client.queues.create("empty");
  const begun = performance.now();
  await assert.rejects(client.queues.reserve("empty", { wait: 20_000, signal: AbortSignal.timeout(100) }), AbortError);
  assert.ok(performance.now() - begun < 5_000);
});

test("close ends streams, and nothing begins after it", async () => {
  const short = new Client({ target: server.target });
  const watching = all(short.watch({ afterPosition: 0 }));
  const receiving = all(short.queues.receive("empty"));
  const applying = all(short.enrollments.apply((async function* () { await sleep(500); })()));
  const closed = { name: "StrataError", code: "CANCELLED" };
  const ends = Promise.all([assert.rejects(watching, closed), assert.rejects(receiving, closed)]);
  await sleep(100);
  short.close();
  await ends;
  assert.deepEqual(await applying, [], "no message was sent");
  await assert.rejects(short.collection("c").get("a"), closed);
  await assert.rejects(short.collection("c").create("a", {}), { ...closed, outcomeUnknown: false });
});

test("calls, a watch, a receiver and a stream of messages go through a restart", { timeout: 60_000 }, async () => {
  const lasting = await LastingServer.start();
  const through = new Client({ target: lasting.target, timeout: 5_000 });
  try {
    const documents = through.collection("documents");
    await documents.create("first", { n: 0 });
    await through.queues.create("work", { reservationTimeout: 2_000 });
    const ids = [];
    const watching = (async () => {
      for await (const { event } of through.watch({ collections: ["documents"], afterPosition: 0 })) {
        ids.push(event.id);
        if (event.id === "last") break;
      }
    })();
    const received = new Set();
    const receiving = (async () => {
      const receiver = through.queues.receive("work", { credits: 5 });
      for await (const message of receiver) {
        const { error } = await receiver.acknowledge(message);
        if (error === undefined) received.add(message.payload.n);
        if (received.size === 20) break;
      }
    })();
    let results = 0;
    const applying = (async () => {
      const messages = async function* () {
        for (let i = 0; i < 300; i++) {
          if (i % 10 === 0) await sleep(20);
          yield { operation: "ENROLL", studentId: `s${i}`, className: "c", sequenceNumber: 1 };
        }
      };
      for await (const result of through.enrollments.apply(messages())) {
        assert.equal(result.error, undefined);
        results++;
      }
    })();
    const writing = (async () => {
      for (let n = 0; n < 20; n++) {
        await documents.create(`d${n}`, { n });
        await through.queues.push("work", { payload: { n } });
        await sleep(20);
      }
      await documents.create("last", {});
    })();
    await sleep(150);
    await lasting.kill();
    await lasting.begin();
    await Promise.all([writing, watching, receiving, applying]);
    assert.deepEqual(ids, ["first", ...Array.from({ length: 20 }, (_, n) => `d${n}`), "last"]);
    assert.equal(results, 300);
    assert.equal((await all(through.enrollments.roster("c"))).length, 300);
  } finally {
    through.close();
    await lasting.stop();
  }
});
