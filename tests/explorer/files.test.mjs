// What holds for the explorer's files by themselves: that none parses markup or names another place, and how values are read and compared.
import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { EXPLORER } from "./support.mjs";

// Node takes a .js for a module only where a package says that it is one; what is served has no use for such a file.
const folder = await mkdtemp(join(tmpdir(), "explorer-"));
await cp(EXPLORER, folder, { recursive: true });
await writeFile(join(folder, "package.json"), '{"type": "module"}');
const [bson, { sideBySide }, { addMicroseconds, duration, localText, parseTime, relativeText }, { destination, link, parse }] =
  await Promise.all(["bson.js", "diff.js", "format.js", "router.js"].map((name) => import(join(folder, name))));
const { contentOf, decimalText, extendedText, fromExtended, keyOf } = bson;
await rm(folder, { recursive: true });

test("the page's files parse no markup, keep nothing, and name no other place", async () => {
  const files = (await readdir(EXPLORER, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  assert.ok(files.length > 20);
  for (const file of files) {
    const text = await readFile(join(file.parentPath ?? file.path, file.name), "utf8");
    for (const word of [
      "innerHTML",
      "outerHTML",
      "insertAdjacentHTML",
      "setHTML",
      "document.write",
      "DOMParser",
      "createContextualFragment",
      "srcdoc",
      "eval(",
      "new Function",
      "localStorage",
      "sessionStorage",
      "indexedDB",
      "document.cookie",
    ]) {
      assert.ok(!text.includes(word), `${file.name} has ${word}`);
    }
    const places = (text.match(/(?:https?:)?\/\/[a-z0-9-]+\.[a-z]{2,}[^\s"']*/gi) ?? []).filter(
      (place) => place !== "http://www.w3.org/2000/svg",
    );
    assert.deepEqual(places, [], file.name);
    assert.ok(!/\sstyle="/.test(text), `${file.name} has a style that the policy refuses`);
  }
});

const bytes = (hex) => Buffer.from(hex.replaceAll(" ", ""), "hex").toString("base64");

test("BSON is read to the last digit, in its own order", () => {
  // {"b": int64 9007199254740993, "10": int32 -1, "2": 1.0, "__proto__": null}
  const content = contentOf({
    bson: bytes("2e000000 12 6200 0100000000002000 10 313000 ffffffff 01 3200 000000000000f03f 0a 5f5f70726f746f5f5f00 00"),
  });
  assert.equal(
    extendedText(content),
    '{"b": {"$numberLong":"9007199254740993"}, "10": -1, "2": {"$numberDouble":"1.0"}, "__proto__": null}',
  );
  assert.throws(
    () => contentOf({ bson: bytes("0a000000 02 6100 ff000000") }),
    RangeError,
    "one that ends early is not half shown",
  );
});

test("decimals are written as Extended JSON writes them", () => {
  // Of the specification's corpus: coefficient, exponent, text.
  for (const [coefficient, exponent, text] of [
    [0n, 0, "0"],
    [110n, -2, "1.10"],
    [1n, -6, "0.000001"],
    [1n, -7, "1E-7"],
    [12345n, -9, "0.000012345"],
    [1n, 3, "1E+3"],
    [12n, 1, "1.2E+2"],
    [9999999999999999999999999999999999n, 0, "9999999999999999999999999999999999"],
    [9999999999999999999999999999999999n, 6111, "9.999999999999999999999999999999999E+6144"],
    [0n, -6176, "0E-6176"],
  ]) {
    const biased = BigInt(exponent + 6176) << 49n;
    assert.equal(decimalText(coefficient & 0xffffffffffffffffn, biased | (coefficient >> 64n)), text);
    assert.equal(decimalText(coefficient & 0xffffffffffffffffn, biased | (coefficient >> 64n) | (1n << 63n)), `-${text}`);
  }
});

test("Extended JSON comes back as it was", () => {
  const text = JSON.stringify([
    1,
    0.5,
    { $numberLong: "9223372036854775807" },
    { $numberDouble: "1.0" },
    { $numberDecimal: "1.10" },
    { $date: "2026-01-31T12:00:00.123Z" },
    { $oid: "65b9f0c4a1b2c3d4e5f60718" },
    { $binary: { base64: "AAH/", subType: "04" } },
    { $regularExpression: { pattern: "a/b", options: "i" } },
    { $timestamp: { t: 4294967295, i: 7 } },
    { $minKey: 1 },
    { $maxKey: 1 },
    { a: [], b: {}, c: null, d: true, "e f": "\u202e" },
  ]);
  assert.deepEqual(JSON.parse(extendedText(fromExtended(JSON.parse(text)), "  ")), JSON.parse(text));
});

test("neither the order of members nor the width of integers is a difference, but a double is", () => {
  const key = (json) => keyOf(fromExtended(json));
  assert.equal(key({ a: 1, b: 2 }), key({ b: { $numberLong: "2" }, a: { $numberInt: "1" } }));
  assert.notEqual(key(1), key({ $numberDouble: "1.0" }));
  assert.notEqual(key("1"), key(1));
  assert.notEqual(key([1, 2]), key([2, 1]));
  assert.notEqual(key({ $date: "2026-01-31T12:00:00Z" }), key("2026-01-31T12:00:00.000Z"));
});

function differences(before, after) {
  const { rows, counts } = sideBySide(fromExtended(before), fromExtended(after));
  return {
    counts,
    marked: rows.filter(({ mark, path }) => mark !== "same" && path !== null).map(({ mark, path }) => `${mark} ${path}`),
    rows,
  };
}

test("what differs is marked at the deepest member, and an element taken out changes no other", () => {
  assert.deepEqual(differences({ a: { b: 1, c: 2 }, "x/y": 1 }, { a: { b: 1, c: 3 }, d: [1] }).marked, [
    "changed /a/c",
    "removed /x~1y",
    "added /d",
  ]);
  assert.deepEqual(differences([1, 2, 3, 4], [1, 3, 4]).marked, ["removed /1"]);
  assert.deepEqual(differences([1, 3], [1, 2, 3]).marked, ["added /1"]);
  assert.deepEqual(differences({ a: [{ n: 1 }, { n: 2 }] }, { a: [{ n: 1 }, { n: 5 }] }).marked, ["changed /a/1/n"]);
  assert.deepEqual(differences({ a: 1 }, { a: [1] }).marked, ["changed /a"]);
  assert.deepEqual(differences({}, {}).counts, { added: 0, removed: 0, changed: 0 });
  // The sides of a row that is the same say the same.
  for (const { mark, left, right } of differences({ a: [1, { b: 2 }], c: 1 }, { c: 2, a: [1, { b: 2 }] }).rows) {
    if (mark === "same") assert.deepEqual(left, right);
  }
});

test("a list of a hundred thousand elements is compared within a moment", () => {
  const numbers = Array.from({ length: 50_000 }, (_, index) => index);
  const { counts } = differences(numbers, [-1, ...numbers.slice(1, 25_000), -2, ...numbers.slice(25_001)]);
  assert.equal(counts.changed, 2);
});

test("each place has a URL that leads back to it, whatever its name is", () => {
  for (const name of ["a/b", "%", "?x=1#y", "..", " ", "ä", '"><img>', "\u202e"]) {
    assert.deepEqual(parse(link.document(name, name, { a: 1 })).path, ["documents", name, name]);
    assert.equal(parse(link.audit({ actor: name })).query.get("actor"), name);
  }
  assert.equal(parse("#/%E0%A4%A"), null);
  assert.equal(parse("#main"), null);
  assert.equal(destination("books/a/b"), link.document("books", "a/b"));
  assert.equal(destination("books"), link.collection("books"));
  assert.equal(destination("actor: ann"), link.audit({ actor: "ann" }));
});

test("times are read as people write them, and none is guessed", () => {
  assert.equal(parseTime("2026-01-31T12:00:00.123456Z"), "2026-01-31T12:00:00.123456Z");
  assert.equal(parseTime("2026-01-31 12:00:00+02:00"), "2026-01-31T10:00:00Z");
  assert.equal(parseTime(localText("2026-01-31T12:00:00.123456Z")), "2026-01-31T12:00:00.123456Z");
  assert.ok(Math.abs(Date.parse(parseTime("2 h ago")) - (Date.now() - 7_200_000)) < 5000);
  assert.equal(parseTime(""), "");
  for (const text of ["yesterday", "2026-13-01", "12:00", "31.01.2026", "2026-01-31T25:00:00Z"])
    assert.equal(parseTime(text), null, text);
  assert.equal(addMicroseconds("2026-12-31T23:59:59.999999Z", 1), "2027-01-01T00:00:00.000000Z");
  assert.equal(relativeText("2026-01-31T12:00:00Z", Date.parse("2026-01-31T12:03:10Z")), "3 min ago");
  assert.equal(relativeText("2026-02-02T12:00:00Z", Date.parse("2026-01-31T12:00:00Z")), "in 2 days");
  assert.equal(duration("5400s"), "1.5 h");
  assert.equal(duration("0.25s"), "250 ms");
});
