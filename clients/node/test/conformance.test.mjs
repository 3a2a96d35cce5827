// Plays every case of ../conformance against this client.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import * as strata from "strata-documents";
import { decode, encode } from "../dist/content.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = join(here, "../../conformance");
const proto = join(here, "../../../proto");
const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
// Nothing of a content may be lost on the way: names such as "10" keep their place, and a whole double stays one.
const exact = { ordered: true, wholeDoubles: "double" };

const special = {
  nan: () => NaN,
  infinity: () => Infinity,
  cycle: () => {
    const value = {};
    value.self = value;
    return value;
  },
  function: () => () => {},
  zero_byte_name: () => ({ "a\0b": 1 }),
  bad_utf8: () => "\ud800",
  too_deep: () => {
    let value = {};
    for (let i = 1; i < 30; i++) value = { a: value };
    return value;
  },
  too_large: () => "x".repeat(3 * 1024 * 1024),
  int_too_large: () => 2n ** 63n,
};

function valueOf(json) {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(valueOf);
  const [name] = Object.keys(json);
  if (Object.keys(json).length === 1) {
    const inner = json[name];
    switch (name) {
      case "$bson_hex":
        return decode(Buffer.from(inner, "hex"), exact);
      case "$special":
        return special[inner]();
      case "$numberInt":
        return Number(inner);
      case "$numberLong":
        return BigInt(inner);
      case "$numberDouble":
        return new strata.Double(Number(inner));
      case "$numberDecimal":
        return strata.Decimal128.fromString(inner);
      case "$oid":
        return new strata.ObjectId(inner);
      case "$date":
        return Math.abs(Number(inner.$numberLong)) <= 8.64e15
          ? new Date(Number(inner.$numberLong))
          : new strata.WideDate(BigInt(inner.$numberLong));
      case "$binary":
        return new strata.Binary(Buffer.from(inner.base64, "base64"), parseInt(inner.subType, 16));
      case "$regularExpression":
        return new strata.BSONRegExp(inner.pattern, inner.options);
      case "$timestamp":
        return new strata.Timestamp(inner);
      case "$minKey":
        return new strata.MinKey();
      case "$maxKey":
        return new strata.MaxKey();
    }
  }
  return Object.fromEntries(Object.entries(json).map(([member, value]) => [member, valueOf(value)]));
}

// Contents are values, all else are options of the same name in camelCase.
const contents = new Set(["content", "replace", "merge", "payload", "filter", "if_matches"]);
const enumName = (text) => text.replace(/^(VERSION_KIND|ENROLLMENT_OPERATION|STRATEGY|MESSAGE_STATE|TRANSACTION_MODE|TRANSACTION_STATUS)_/, "");
function optionsOf(args) {
  const options = {};
  for (const [name, value] of Object.entries(args)) {
    if (contents.has(name)) options[camel(name)] = valueOf(value);
    else if (name === "operations") options.operations = value.map(operationOf);
    else if (name === "newer") options.newer = Array.isArray(value) ? value : [value.path, value.value];
    else if (name === "change") Object.assign(options, optionsOf(value));
    else if (name === "kinds" || name === "operation" || name === "strategy" || name === "state") {
      options[camel(name)] = Array.isArray(value) ? value.map(enumName) : enumName(value);
    } else if (name === "snapshot") options.snapshot = optionsOf(value);
    else if (typeof value === "string" && /^-?\d{16,}$/.test(value)) options[camel(name)] = BigInt(value);
    else options[camel(name)] = value;
  }
  return options;
}

function operationOf(operation) {
  const [[kind, given]] = Object.entries(operation);
  const makers = {
    set: strata.set,
    unset: strata.unset,
    increment: strata.increment,
    append: strata.append,
    append_missing: strata.appendMissing,
    remove_all: strata.removeAll,
  };
  const [path, value] = Array.isArray(given) ? given : [given];
  return makers[kind](path, kind === "unset" ? undefined : valueOf(value));
}

const member = (object, name) => (object instanceof Map ? object.get(name) : object?.[name]);
const withMember = (object, name, value) =>
  object instanceof Map ? new Map(object).set(name, value) : { ...object, [name]: value };

function modifierOf(text, documents, id) {
  const [kind, path = ""] = text.split(":");
  const name = path.slice(1);
  const increment = (content) => {
    const old = member(content, name) ?? 0;
    return withMember(content ?? {}, name, typeof old === "bigint" ? old + 1n : old + 1);
  };
  if (kind === "increment") return increment;
  if (kind === "nothing") return () => undefined;
  if (kind === "in_place") {
    return (content) => {
      content.set(name, content.get(name) + 1);
    };
  }
  if (kind === "throw") {
    return () => {
      throw new Error("thrown by fn");
    };
  }
  assert.equal(kind, "conflict_once");
  let first = true;
  return async (content) => {
    if (first) {
      first = false;
      const change = { operations: [strata.increment(path, 1)] };
      await documents.update(id, change, { allowMissing: true });
    }
    return increment(content);
  };
}

// What the steps of a case take of a stream, and then what was refused.
async function play(stream, steps, given) {
  const iterator = stream[Symbol.asyncIterator]();
  const taken = [];
  const asked = [];
  for (const one of steps) {
    if (one === "next") {
      const { value, done } = await iterator.next();
      assert.ok(!done, "the stream is over");
      taken.push(value);
      given.push(value);
      continue;
    }
    const [[kind, number], ...more] = Object.entries(one);
    const { reason, ...others } = Object.fromEntries(more);
    if (kind === "ack") await stream.ack(taken[number]);
    else if (kind === "nack") await stream.nack(taken[number], reason, others);
    else asked.push({ messageId: taken[number].messageId, result: stream[kind](taken[number]) });
  }
  await stream.close();
  for (const { messageId, result } of asked) {
    const { error } = await result.catch((thrown) => ({ error: thrown }));
    if (error !== undefined) given.push({ messageId, error });
  }
}

async function take(iterable, count, given) {
  if (count === 0) return given;
  for await (const item of iterable) {
    given.push(item);
    if (given.length === count) break;
  }
  return given;
}

// What the operation gives. Lists are filled into `given`, so that what came before an error is kept.
async function perform(client, collection, op, args, given) {
  const documents = client.collection(collection);
  const { id, take: count, steps, ...rest } = args;
  const options = optionsOf(rest);
  const without = (...names) => Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));
  const list = (iterable) => take(iterable, count, given);
  const all = (values) => (given.push(...values), given);
  switch (op) {
    case "create":
      return documents.create(id, options.content, without("content"));
    case "get":
      return documents.get(id, options);
    case "batch_get":
      return documents.batchGet(options.ids, without("ids"));
    case "update": {
      const { replace, merge, operations } = options;
      const change = replace !== undefined ? { replace } : { merge, operations };
      return documents.update(id, change, without("replace", "merge", "operations"));
    }
    case "modify":
      return documents.modify(id, modifierOf(rest.fn, documents, id), without("fn"));
    case "delete":
      return documents.delete(id, options);
    case "restore":
      return documents.restore(id, options.version, without("version"));
    case "history":
      return list(documents.history(id, options));
    case "diff":
      return list(documents.diff(id, options.fromVersion, options.toVersion, without("fromVersion", "toVersion")));
    case "audit":
      return list(documents.audit({ ...options, ...(id === undefined ? {} : { id }) }));
    case "list":
      return list(documents.list(options));
    case "watch":
    case "client.watch": {
      const watch = op === "watch" ? documents.watch(options) : client.watch(options);
      const items = (async function* () {
        for await (const { event, document } of watch) yield event ?? document;
      })();
      return list(items);
    }
    case "client.audit":
      return list(client.audit({ ...options, ...(id === undefined ? {} : { id }) }));
    case "collections.create":
      return client.collections.create(options.name, without("name"));
    case "collections.get":
      return client.collections.get(options.name);
    case "collections.list":
      return list(client.collections.list(options));
    case "collections.delete":
      return client.collections.delete(options.name, without("name"));
    case "enrollments.enroll":
    case "enrollments.unenroll": {
      const { studentId, className, sequenceNumber } = options;
      const left = without("studentId", "className", "sequenceNumber");
      return client.enrollments[op.split(".")[1]](studentId, className, sequenceNumber, { collection, ...left });
    }
    case "enrollments.get":
      return client.enrollments.get(options.studentId, { collection, ...without("studentId") });
    case "enrollments.roster":
      return list(client.enrollments.roster(options.className, { collection, ...without("className") }));
    case "enrollments.purge_tombstones":
      return client.enrollments.purgeTombstones(options.throughSequenceNumber, { collection, ...without("throughSequenceNumber") });
    case "enrollments.apply":
      return list(client.enrollments.apply(rest.messages.map((message) => ({ collection, ...optionsOf(message) }))));
    case "leases.acquire":
      return client.leases.acquire(options.name, options.holder, without("name", "holder"));
    case "leases.hold": {
      const { name, holder, forMs, ...others } = options;
      const ends = (held) => Promise.race([sleep(forMs), once(held.signal, "abort")]).then(() => undefined);
      return client.leases.hold(name, holder, ends, others);
    }
    case "queues.create":
      return client.queues.create(options.name, without("name"));
    case "queues.push":
      return client.queues.push(options.queue, without("queue"));
    case "queues.pop":
    case "queues.reserve":
      return all(await client.queues[op.split(".")[1]](options.queue, without("queue")));
    case "queues.move":
      return client.queues.move(options.token, options.queue, without("token", "queue"));
    case "queues.receive": {
      const receiver = client.queues.receive(options.queue, { credits: 10, ...without("queue") });
      if (steps !== undefined) return play(receiver, steps, given);
      // What is taken is done with: the stream's end hands what is out to the next one at once.
      const done = (async function* () {
        for await (const message of receiver) {
          await receiver.acknowledge(message);
          yield message;
        }
      })();
      return list(done);
    }
    case "subscriptions.create":
      return client.subscriptions.create(options.name, without("name"));
    case "subscriptions.get":
      return client.subscriptions.get(options.name);
    case "subscriptions.delete":
      return (await client.subscriptions.delete(options.name)) ?? {};
    case "subscriptions.consume": {
      const consumer = client.subscriptions.consume(options.name, options.consumer, without("name", "consumer"));
      return steps === undefined ? list(consumer) : play(consumer, steps, given);
    }
    case "transaction.commit": {
      const transaction = client.transaction();
      for (const part of rest.parts) {
        const [[kind, { collection: named = collection, id: document, ...partArgs }]] = Object.entries(part);
        assert.equal(kind, "create", `part ${kind}`);
        const { content, ...partOptions } = optionsOf(partArgs);
        transaction.create(named, document, content, partOptions);
      }
      return transaction.commit(without("parts"));
    }
    default:
      throw new assert.AssertionError({ message: `the runner does not know the operation ${op}` });
  }
}

const read = new Set(["content", "payload", "before", "after"]);
const isDefault = (value) =>
  value === undefined ||
  value === null ||
  value === "" ||
  value === false ||
  value === 0 ||
  value === 0n ||
  value === "UNSPECIFIED" ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

const isDocument = (value) => value instanceof Map || (typeof value === "object" && value !== null && value.constructor === Object);
const bytesOf = (value) => Buffer.from(encode(isDocument(value) ? value : { v: value })).toString("hex");

function compare(expected, actual, at, whole) {
  if (isDefault(expected) || (typeof expected === "string" && /^0$/.test(expected))) {
    if (isDefault(actual) || (typeof expected === "string" && /_UNSPECIFIED$/.test(expected))) return;
  }
  if (actual instanceof Date) return assert.equal(actual.getTime(), new Date(expected).getTime(), at);
  if (actual instanceof Uint8Array) return assert.equal(Buffer.from(actual).toString("base64"), expected, at);
  if (typeof actual === "bigint" || typeof actual === "number") return assert.equal(String(actual), String(expected), at);
  if (typeof expected === "string" && typeof actual === "string") {
    return assert.ok(expected === actual || expected.endsWith(`_${actual}`), `${at}: ${actual}, not ${expected}`);
  }
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${at} is no list`);
    assert.equal(actual.length, expected.length, `${at}: length`);
    expected.forEach((element, i) => compare(element, actual[i], `${at}[${i}]`, whole));
    return;
  }
  if (typeof expected === "object" && expected !== null) {
    assert.ok(typeof actual === "object" && actual !== null, `${at} is ${actual}`);
    for (const [name, value] of Object.entries(expected)) {
      const found = actual[camel(name)];
      if (name === "error") compareError(value, found, `${at}.error`);
      else if (read.has(name)) assert.equal(bytesOf(found ?? null), bytesOf(valueOf(value)), `${at}.${name}`);
      else compare(value, found, `${at}.${name}`, whole);
    }
    if (whole) {
      const names = new Set(Object.keys(expected).map(camel));
      for (const [name, value] of Object.entries(actual)) {
        if (!names.has(name)) assert.ok(isDefault(value), `${at} has ${name} too`);
      }
    }
    return;
  }
  assert.equal(actual, expected, at);
}

// Where a part of an answer failed, its code is a number.
const kCodes = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED".split(" ");
const kErrorParts = ["reason", "code", "outcome_unknown", "metadata", "retry_delay_ms", "class", "message", "request_id"];
function compareError(expected, error, at) {
  assert.ok(error instanceof Error, `${at}: no error`);
  for (const name of Object.keys(expected)) assert.ok(kErrorParts.includes(name), `${at}: the runner does not know ${name}`);
  if ("reason" in expected) assert.equal(error.reason, expected.reason ?? "", `${at}: ${error}`);
  if ("code" in expected) assert.equal(typeof expected.code === "number" ? kCodes.indexOf(error.code) : error.code, expected.code, `${at}: ${error}`);
  if ("outcome_unknown" in expected) assert.equal(error.outcomeUnknown, expected.outcome_unknown, `${at} outcome_unknown: ${error}`);
  if ("retry_delay_ms" in expected) assert.equal(error.retryDelay ?? null, expected.retry_delay_ms, at);
  if ("class" in expected) assert.equal(error.name === "StrataError" ? "Error" : error.name, expected.class, at);
  if ("request_id" in expected) assert.equal(error.requestId, expected.request_id, at);
  if ("message" in expected) assert.ok(error.message.includes(expected.message), `${at}: ${error.message}`);
  for (const [name, value] of Object.entries(expected.metadata ?? {})) assert.equal(error.metadata[name], value, `${at} ${name}`);
}

async function step(client, collection, { op, args = {}, expect = {} }, at) {
  const known = ["value", "part", "list", "error", "refused_at", "missing"];
  for (const name of Object.keys(expect)) assert.ok(known.includes(name), `${at}: the runner does not know ${name}`);
  const given = [];
  let result;
  let error;
  try {
    result = await perform(client, collection, op, args, given);
  } catch (thrown) {
    error = thrown;
  }
  if (error instanceof assert.AssertionError) throw error;
  if ("refused_at" in expect) {
    assert.ok(error instanceof strata.InvalidValue, `${at}: ${error}`);
    return assert.equal(error.path, expect.refused_at, at);
  }
  if ("error" in expect) compareError(expect.error, error, at);
  else if (error !== undefined) throw error;
  if ("list" in expect) compare(expect.list, given, at, false);
  if ("value" in expect) compare(expect.value, result, at, true);
  if ("part" in expect) compare(expect.part, result, at, false);
  if (expect.missing) assert.equal(result, undefined, at);
}

function partOf(expected, actual, at) {
  if (Array.isArray(expected)) {
    assert.equal((actual ?? []).length, expected.length, `${at}: length`);
    return expected.forEach((element, i) => partOf(element, actual[i], `${at}[${i}]`));
  }
  if (typeof expected === "object" && expected !== null) {
    for (const [name, value] of Object.entries(expected)) partOf(value, actual?.[name], `${at}.${name}`);
    return;
  }
  if (isDefault(expected) && isDefault(actual)) return;
  if (isDefault(expected) && actual === "0") return;
  assert.equal(String(actual), String(expected), at);
}

const requestIdOf = ({ request }) => request.request_id ?? request.messages?.[0]?.request_id;

const temporary = mkdtempSync(join(tmpdir(), "strata-conformance-"));
let fake;
let fakePort;
let answers;
const ask = async (order) => {
  fake.stdin.write(`${JSON.stringify(order)}\n`);
  return JSON.parse((await answers.next()).value);
};

before(async () => {
  const descriptors = join(temporary, "descriptors.pb");
  const protos = readdirSync(join(proto, "strata/v1")).map((name) => `strata/v1/${name}`);
  const rpc = ["google/rpc/status.proto", "google/rpc/error_details.proto"];
  execFileSync("protoc", ["-I", proto, "-I", here, "--include_imports", `--descriptor_set_out=${descriptors}`, ...protos, ...rpc]);
  fake = spawn("/usr/bin/python3", [join(folder, "fake_server.py"), ...files.map((f) => join(folder, f)), "--descriptors", descriptors], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  answers = createInterface(fake.stdout)[Symbol.asyncIterator]();
  fakePort = JSON.parse((await answers.next()).value).port;
});

after(async () => {
  fake?.stdin.end();
  rmSync(temporary, { recursive: true });
});

for (const file of files) {
  for (const case_ of JSON.parse(readFileSync(join(folder, file), "utf8"))) {
    const skip = case_.except?.node;
    test(`${file}: ${case_.name}`, { skip, timeout: 60_000 }, async () => {
      const scripted = case_.server === "scripted";
      const { retry_for_ms: retryFor, timeout_ms: timeout, actor, ...others } = case_.client ?? {};
      assert.deepEqual(others, {}, "options of the client that the runner does not know");
      // Of its own, as the ledger remembers what was deleted.
      const server = scripted ? undefined : await strata.testing.Server.start();
      const target = scripted ? `127.0.0.1:${fakePort}` : server.target;
      const client = new strata.Client({ target, ...exact, ...(retryFor === undefined ? {} : { retryFor }), timeout, actor });
      try {
        if (scripted) await ask({ begin: case_.name });
        else await client.collections.create("c");
        let error;
        try {
          for (const [i, one] of case_.do.entries()) await step(client, "c", one, `do[${i}] ${one.op}`);
        } catch (thrown) {
          error = thrown;
        }
        if (scripted) {
          const { calls, problems } = await ask({ end: true });
          if (error) throw error;
          assert.deepEqual(problems, []);
          checkCalls(case_, calls);
        }
        if (error) throw error;
      } finally {
        client.close();
        await server?.stop("SIGKILL");
      }
    });
  }
}

function checkCalls(case_, calls) {
  if (case_.calls !== undefined) {
    assert.equal(calls.length, case_.calls.length, "number of calls");
    case_.calls.forEach(({ method, request = {} }, i) => {
      assert.equal(calls[i].method, method, `calls[${i}]`);
      partOf(request, calls[i].request, `calls[${i}]`);
    });
  }
  const seen = new Map();
  for (const [g, group] of (case_.same_request_id ?? []).entries()) {
    const ids = new Set(group.map((n) => requestIdOf(calls[n])));
    assert.equal(ids.size, 1, `calls ${group} have one request id: ${[...ids]}`);
    const [id] = ids;
    assert.ok(id, `calls ${group} have a request id`);
    assert.ok(!seen.has(id), `groups ${seen.get(id)} and ${g} have one request id`);
    seen.set(id, g);
  }
  for (const [n, [least, most]] of (case_.gaps_ms ?? []).map((gap) => gap ?? [0, Infinity]).entries()) {
    const gap = calls[n + 1].at_ms - calls[n].at_ms;
    assert.ok(gap >= least && gap <= most, `between calls ${n} and ${n + 1} are ${gap} ms, not ${least} to ${most}`);
  }
}
