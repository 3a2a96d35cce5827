// Each view of the explorer by its URL: it says what it shows, in both colour schemes, on a wide screen and on a narrow one.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { E, IMAGE, ROOT, SCREENSHOTS, SCRIPT, Visit, openWorld } from "./support.mjs";

let world;
let visit;

before(async () => {
  world = await openWorld({ versions: 200 });
  visit = await Visit.open(world.browser, world.server.origin);
});

after(() => world?.close());

// Every view by its URL, and what it must say.
const VIEWS = {
  recent: ["", ["Recent changes", "odyssey", "customer 4712"]],
  collections: ["#/collections", ["books", "deltas, a keyframe every 16", "KiB"]],
  collection: ["#/collections/books", ["alice", "Lewis Carroll", "23 documents"]],
  filtered: [
    `#/collections/books?prefix=e&where=${E('{"stock": {"$gt": 4}}')}&fields=title,price`,
    ["Emma", "16.50", "2 documents"],
  ],
  "as-of": ["#/collections/books?at=2100-01-01T00:00:00Z", ["future"]],
  timeline: [
    "#/documents/books/moby",
    ["it was not to be deleted", "customer 4711", "till=2", "Moby-Dick; or, The Whale", "9 versions"],
  ],
  version: ["#/documents/books/moby?version=1", ["v1 of 9", '"New York"']],
  diff: ["#/documents/books/moby?a=1&b=9", ["3 changed, 2 added, 1 removed", '"American"']],
  "diff-deleted": ["#/documents/books/moby?a=5&b=6", ["6 removed", "no content"]],
  "diff-wide": ["#/documents/kinds/wide?a=1&b=2", ["2 changed", "lines without a change"]],
  kinds: [
    "#/documents/kinds/every",
    ["9007199254740993", "1.10", "2026-01-31T12:00:00.123Z", "65b9f0c4a1b2c3d4e5f60718", "\\u202eevil.exe"],
  ],
  pending: ["#/documents/books/kim", ["v1 of 2", "is not decided", "order-1002", "stock: 5"]],
  hostile: [`#/documents/${E(`evil ${SCRIPT}`)}/${E(`id ${IMAGE}`)}`, [`reason ${IMAGE}`, `actor ${SCRIPT}`, `id ${IMAGE}`]],
  audit: ["#/audit?actor=till&kinds=updated", ["5 changes", "customer 4711"]],
  "audit-request": ["#/audit?request_id=delivery-2026-44", ["1 change.", "delivery"]],
  enrollments: ["#/enrollments", ["Look up a student, or a class."]],
  student: ["#/enrollments/students/students/ada", ["Enrolled in 2 classes", "Unenrolled from 2 classes", "Ethics", "2,000"]],
  roster: [`#/enrollments/students/classes/${E("CS 101")}`, ["5 students", "grace"]],
  verify: ["#/verify/books", ["Verify now", "Where the ledger ends"]],
  feed: ["#/feed?after=0&collections=books", ["Live at commit", "it was not to be deleted"]],
  subscriptions: ["#/subscriptions", ["mail on new books", "search index", "every collection"]],
  subscription: [`#/subscriptions/${E("mail on new books")}`, ["4 partitions", "no template for moby", "2 parked documents"]],
  queues: ["#/queues", ["mails", "dead mails", "paused"]],
  queue: ["#/queues/mails", ["reserved", "waiting", "the mail server is busy", "8 messages"]],
  "dead-letters": [`#/queues/${E("dead mails")}`, ["16.50", "1 message"]],
  "queue-dead": ["#/queues/mails?state=dead", ["550 no such mailbox", "1 message."]],
  schedules: ["#/queues/nightly", ["Paused", "30 2 * * 1-5", "every 1 h"]],
  transactions: ["#/transactions", ["order-1001", "done", "order-1002", "pending"]],
  "transactions-pending": ["#/transactions?status=pending", ["order-1002", "1 transaction."]],
  transaction: ["#/transactions/order-1001", ["in one commit", "orders", "2 documents"]],
  leases: ["#/leases", ["till 2", "anna on tablet 7", "Main Street", "released"]],
  server: ["#/server", ["rocksdb", "strata.v1.DocumentService", "1.0 MiB"]],
  missing: ["#/documents/books/nope", ["Not there", "DOCUMENT_NOT_FOUND", "Check the id"]],
  nowhere: ["#/nowhere", ["Nothing here"]],
};

const shot = async (name, width, scheme) => SCREENSHOTS && visit.screenshot(SCREENSHOTS, `${name}-${width}-${scheme}`);

for (const [name, [hash, wanted]] of Object.entries(VIEWS)) {
  test(`the view "${name}" is a URL, says what it shows, is accessible, dark or light, and fits 400 px`, async () => {
    await visit.look({ width: 1280, scheme: "light" });
    await visit.go(hash);
    for (const text of wanted) await visit.says(text);
    assert.match(await visit.page.title(), /· Strata$/);
    assert.equal(await visit.page.$$eval("h1", (all) => all.length), 1);
    await shot(name, 1280, "light");
    assert.deepEqual(await visit.axe(), [], "axe, light");
    if (SCREENSHOTS) {
      await visit.look({ scheme: "dark" });
      await shot(name, 1280, "dark");
    }

    await visit.look({ width: 400, height: 800, scheme: "dark" });
    assert.equal(await visit.scrollsSideways(), 0, "the page scrolls sideways at 400 px");
    const unwrapped = await visit.page.$$eval(
      ".rows td",
      (cells) => cells.filter((cell) => getComputedStyle(cell, "::before").whiteSpace === "nowrap").length,
    );
    assert.equal(unwrapped, 0, "labels of cards run into their values");
    await shot(name, 400, "dark");
    assert.deepEqual(await visit.axe(), [], "axe, dark, 400 px");
    if (SCREENSHOTS) {
      await visit.look({ scheme: "light" });
      await shot(name, 400, "light");
    }
    await visit.check();
  });
}

test("the timeline's screenshot for the manual is made", { skip: !process.env.EXPLORER_TIMELINE }, async () => {
  await visit.look({ width: 1280, height: 800, scheme: "light" });
  await visit.go("#/documents/books/moby?version=8");
  await visit.says('"American"', ".timeline-pane");
  await visit.screenshot(join(ROOT, "service/docs"), "explorer-timeline");
});
