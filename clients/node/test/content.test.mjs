// What is written is read as it was, whatever it is; and what BSON cannot hold is refused with its path.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BSON, BSONRegExp, Binary, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from "bson";

import { decode, encode } from "../dist/content.js";
import { plainOf, structOf } from "../dist/extended_json.js";
import { Time } from "../dist/time.js";

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000_007);
console.log(`seed ${seed} (SEED=${seed} plays it again)`);

// mulberry32: the same numbers for the same seed, on every machine.
function randomOf(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function values(random) {
  const below = (n) => Math.floor(random() * n);
  const bytes = (n) => Uint8Array.from({ length: n }, () => below(256));
  const text = () =>
    Array.from({ length: below(12) }, () => String.fromCodePoint([below(0x80), 0x80 + below(0x700), 0x1f600 + below(40), 0][below(4)])).join("");
  const name = () => `n${text().replaceAll("\0", "")}`;
  const leaves = [
    () => null,
    () => random() < 0.5,
    () => below(2 ** 32) - 2 ** 31,
    () => (random() - 0.5) * 10 ** (below(600) - 300),
    () => [0, -0, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 5e-324, 1.7976931348623157e308][below(7)],
    () => BigInt.asIntN(64, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32))),
    () => [0n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n][below(4)],
    () => text(),
    () => new Date(below(2 ** 42) - 2 ** 41),
    () => Buffer.from(bytes(below(40))),
    () => new ObjectId(bytes(12)),
    () => new UUID(),
    () => new Binary(bytes(below(20)), 0x80 + below(100)),
    () => Decimal128.fromString(`${below(2) ? "-" : ""}${below(10 ** 9)}E${below(40) - 20}`),
    () => new BSONRegExp(`a${below(9)}.*`, "im"),
    () => new Timestamp({ t: below(2 ** 32), i: below(2 ** 32) }),
    () => new MinKey(),
    () => new MaxKey(),
  ];
  const any = (depth) => {
    const kind = below(depth > 0 ? 10 : 8);
    if (kind === 8) return Array.from({ length: below(5) }, () => any(depth - 1));
    if (kind === 9) return object(depth - 1);
    return leaves[below(leaves.length)]();
  };
  const object = (depth) => Object.fromEntries(Array.from({ length: below(6) }, () => [name(), any(depth)]));
  return object;
}

test("what is written is read as it was, and written again has the same bytes", () => {
  for (let round = 0; round < 2000; round++) {
    const value = values(randomOf(seed + round))(6);
    const bytes = encode(value);
    const read = decode(bytes);
    // EJSON compares what the values are: equal bytes stand in Buffers and in Uint8Arrays.
    assert.deepEqual(BSON.EJSON.stringify(read, { relaxed: false }), BSON.EJSON.stringify(value, { relaxed: false }), `seed ${seed}, round ${round}`);
    assert.deepEqual(Buffer.from(encode(read)), Buffer.from(bytes), `seed ${seed}, round ${round}`);
    const long = decode(bytes, { int64: "long" });
    assert.deepEqual(Buffer.from(encode(long)), Buffer.from(bytes), `seed ${seed}, round ${round}, as Long`);
  }
});

test("the bytes are those of MongoDB's own library", () => {
  for (let round = 0; round < 500; round++) {
    const value = values(randomOf(seed + 10_000 + round))(4);
    assert.deepEqual(Buffer.from(encode(value)), Buffer.from(BSON.serialize(value)), `seed ${seed}, round ${round}`);
  }
});

test("with Maps and Doubles every document keeps its bytes", () => {
  for (let round = 0; round < 500; round++) {
    const random = randomOf(seed + 20_000 + round);
    const value = new Map([["b", new Double(3)], ["10", 1n], ["9", values(random)(4)], ["a", new Map([["1", new Double(-0)], ["0", 2]])]]);
    const bytes = Buffer.from(encode(value));
    assert.deepEqual(Buffer.from(encode(decode(bytes, { ordered: true, wholeDoubles: "double" }))), bytes, `seed ${seed}, round ${round}`);
  }
});

test("what goes as Extended JSON comes back as what goes as BSON", () => {
  for (let round = 0; round < 500; round++) {
    const value = values(randomOf(seed + 30_000 + round))(4);
    const canonical = (plain) => BSON.EJSON.stringify(plain, { relaxed: false });
    assert.equal(canonical(plainOf(structOf(value), {})), canonical(decode(encode(value))), `seed ${seed}, round ${round}`);
  }
});

test("numbers become what they are", () => {
  const type = (value) => encode({ a: value })[4];
  for (const whole of [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]) assert.equal(type(whole), 0x10, String(whole));
  for (const other of [-0, 0.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 53]) assert.equal(type(other), 0x01, String(other));
  assert.equal(type(1n), 0x12);
  assert.equal(type(new Double(1)), 0x01);
  assert.equal(type(new Int32(1)), 0x10);
  assert.equal(type(Long.fromNumber(1)), 0x12);
});

test("members that are undefined are left out", () => {
  assert.deepEqual(decode(encode({ a: 1, b: undefined, c: { d: undefined } })), { a: 1, c: {} });
});

test("what BSON cannot hold is refused, with its path", () => {
  const cycle = { a: {} };
  cycle.a.b = cycle;
  let deep = {};
  for (let i = 0; i < 24; i++) deep = { a: deep };
  const cases = [
    [{ a: NaN }, "/a"],
    [{ a: [1, { b: Infinity }] }, "/a/1/b"],
    [{ a: () => 1 }, "/a"],
    [{ a: Symbol("s") }, "/a"],
    [{ a: [1, undefined] }, "/a/1"],
    // eslint-disable-next-line no-sparse-arrays
    [{ a: [, 1] }, "/a/0"],
    [cycle, "/a/b"],
    [{ "x/y~z": { a: NaN } }, "/x~1y~0z/a"],
    [{ a: { "b\0c": 1 } }, "/a/b\0c"],
    [{ a: "\ud800" }, "/a"],
    [{ "\udc00": 1 }, "/\udc00"],
    [{ a: 2n ** 63n }, "/a"],
    [{ a: new Date(NaN) }, "/a"],
    [{ a: new Time(5, 1000) }, "/a"],
    [{ a: new Set([1]) }, "/a"],
    [{ a: Promise.resolve(1) }, "/a"],
    [{ a: new (class Book {})() }, "/a"],
    [{ a: Decimal128.fromString("NaN") }, "/a"],
    [deep, "/a".repeat(24)],
  ];
  for (const [value, path] of cases) {
    assert.throws(() => encode(value), (error) => {
      assert.equal(error.name, "InvalidValue");
      assert.equal(error.path, path);
      return true;
    });
  }
  assert.throws(() => encode({ a: "x".repeat(3 * 1024 * 1024) }), { name: "InvalidValue", path: "/a" });
  assert.throws(() => encode({ a: Array(300_000).fill("xxxx") }), { name: "InvalidValue" });
  for (const value of [null, undefined, 1, "a", [], new Date(), new ObjectId()]) {
    assert.throws(() => encode(value), { name: "InvalidValue", path: "" });
  }
});

test("a value that may stand twice is no cycle", () => {
  const shared = { n: 1 };
  assert.deepEqual(decode(encode({ a: shared, b: [shared, shared] })), { a: { n: 1 }, b: [{ n: 1 }, { n: 1 }] });
});
