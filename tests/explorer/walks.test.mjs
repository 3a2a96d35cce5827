// Walks through the explorer: by keyboard, with hostile data, with much data, and with a server that goes and comes back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { E, IMAGE, SCREENSHOTS, SCRIPT, Server, Visit, newToken, openWorld } from "./support.mjs";

const VERSIONS = 10_000;

let world;
let server;

before(async () => {
  world = await openWorld({ versions: VERSIONS });
  ({ server } = world);
});

after(() => world?.close());

async function visiting(options, work) {
  const visit = await Visit.open(world.browser, options.origin ?? server.origin, options);
  try {
    await work(visit);
    await visit.check();
  } finally {
    await visit.close();
  }
}

test("the walk from recent changes to a diff needs the keyboard alone", async () => {
  await visiting({}, async (visit) => {
    await visit.go("");
    await visit.press("Tab");
    assert.deepEqual((await visit.focused()).text, "Skip to the content");
    await visit.press("Enter");
    assert.equal((await visit.focused()).text, "Recent changes");
    await visit.press("j");
    let focused = await visit.focused();
    assert.equal(focused.text, "books/emma");
    assert.ok(focused.outlined, "the focus is not seen");
    await visit.press("j", "k", "ArrowDown", "ArrowUp");
    assert.equal((await visit.focused()).text, "books/emma");
    await visit.press("Enter");
    await visit.says("4 versions");
    assert.match(visit.page.url(), /#\/documents\/books\/emma$/);
    assert.equal((await visit.focused()).text, "emma", "the heading of the new view has the focus");

    // The newest two are chosen; the older side goes two further down.
    await visit.tabTo(({ id }) => id === "a-3");
    await visit.press("ArrowDown", "ArrowDown");
    assert.equal((await visit.focused()).id, "a-1");
    await visit
      .tabTo(({ text }) => text === "Compare v1 with v4", { key: "Tab" })
      .catch(() => visit.tabTo(({ text }) => text === "Compare v1 with v4", { key: "Shift+Tab" }));
    await visit.press("Enter");
    await visit.says("Version 1 and version 4");
    assert.match(visit.page.url(), /\?a=1&b=4$/);
    const row = await visit.page.$eval("tr[data-path='/stock']", (element) => element.innerText.replace(/\s+/g, " ").trim());
    assert.equal(row, "~ changed stock: 4 stock: 7");

    await visit.page.goBack();
    await visit.says("4 versions");
    assert.equal((await visit.focused()).text, "Compare v1 with v4", "going back leads to where one was");
    await visit.page.goBack();
    assert.equal((await visit.focused()).text, "books/emma");
    await visit.page.goForward();
    await visit.says("4 versions");
  });
});

test("keys lead to every view, to the search, to their own list, and back", async () => {
  await visiting({}, async (visit) => {
    await visit.go("");
    for (const [key, heading] of [
      ["c", "Collections"],
      ["a", "Audit"],
      ["e", "Enrollments"],
      ["v", "Verify"],
      ["f", "Feed"],
      ["s", "Subscriptions"],
      ["q", "Queues"],
      ["t", "Transactions"],
      ["l", "Leases"],
      ["i", "Server"],
      ["r", "Recent changes"],
    ]) {
      await visit.press("g", key);
      await visit.page.waitForFunction((wanted) => document.querySelector("main h1")?.innerText === wanted, {}, heading);
    }
    await visit.press("?");
    await visit.find("dialog", "Keys");
    await visit.press("Escape");
    await visit.page.waitForFunction(() => !document.querySelector("dialog"));
    await visit.press("/");
    assert.equal((await visit.focused()).id, "jump");
    await visit.page.keyboard.type("books/moby");
    await visit.press("Enter");
    await visit.says("9 versions");
    await visit.press("/");
    await visit.page.keyboard.type("actor:ben");
    await visit.press("Enter");
    await visit.says("wrong button");
    await visit.press("/", "Escape");
    assert.notEqual((await visit.focused()).id, "jump");
  });
});

test("the slider goes over a document's history by keys, says its time, and is part of the URL", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/documents/books/moby");
    const range = await visit.find("slider", "As of");
    await range.focus();
    await visit.press("Home");
    await visit.says('"New York"', ".content");
    assert.match(
      await visit.page.$eval("#as-of", (element) => element.getAttribute("aria-valuetext")),
      /^version 1 of 9, .* ago, \d{4}-\d\d-\d\d .* UTC$/,
    );
    await visit.page.waitForFunction(() => location.hash.endsWith("version=1"));
    await visit.press("ArrowRight");
    await visit.says("customer 4711", ".content-pane");
    await visit.page.waitForFunction(() => location.hash.endsWith("version=2"));
    assert.equal((await visit.focused()).id, "as-of", "the slider keeps the focus");
    await visit.page.reload({ waitUntil: "load" });
    await visit.settled();
    await visit.says("v2 of 9", ".slider-where");
    for (let i = 0; i < 4; i++) {
      await visit.press("]");
      await visit.says(`v${3 + i} of 9`, ".slider-where");
    }
    await visit.says("this version is a deletion", ".content-pane");
  });
});

test("the slider over a collection's history shows the documents as they were", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/collections/orders");
    await visit.says("1001");
    await visit.go("#/collections/books?prefix=emma&fields=stock");
    await visit.says("v4");
    await visit.press("[");
    await visit.says("v3");
    await visit.page.waitForFunction(() => /[?&]at=/.test(location.hash));
    await visit.says("Back to now");
    await visit.page.reload({ waitUntil: "load" });
    await visit.says("v3");
    await visit.press("]");
    await visit.says("v4");
    await (await visit.find("slider", "As of")).focus();
    await visit.press("Home");
    await visit.says("No document matches.");
    assert.equal((await visit.focused()).id, "as-of");
  });
});

test("ten thousand versions are paged without a freeze", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/documents/sensors/long");
    await visit.says("100 versions so far.");
    await visit.page.evaluate(() => {
      window.longest = 0;
      new PerformanceObserver((list) =>
        list.getEntries().forEach((entry) => (window.longest = Math.max(window.longest, entry.duration))),
      ).observe({ type: "longtask" });
    });
    const began = performance.now();
    for (let shown = 100; shown < VERSIONS;) {
      await visit.clickText("button", "1,000 more");
      shown = Math.min(VERSIONS, shown + 1000);
      await visit.page.waitForFunction(
        (number) => document.querySelectorAll(".entry").length === number,
        { polling: 100, timeout: 60_000 },
        shown,
      );
    }
    await visit.says("10,000 versions.");
    const [took, longest] = [performance.now() - began, await visit.page.evaluate(() => window.longest)];
    assert.ok(took < 60_000, `it took ${took} ms`);
    assert.ok(longest < 2000, `the page froze for ${longest} ms`);
    // What is far away is there as well, and what changed in it is asked for when it comes into sight.
    await visit.press("End");
    await visit.page.waitForFunction(() => document.querySelector("[data-version='1']")?.innerText.includes("reading 0\n"), {
      polling: 100,
    });
    const before_ = performance.now();
    await visit.page.evaluate(
      () =>
        new Promise((resolve) => {
          document.querySelector("[data-version='5000'] .entry-version").focus();
          requestAnimationFrame(() => requestAnimationFrame(resolve));
        }),
    );
    await visit.press("ArrowDown", "ArrowDown");
    assert.equal((await visit.focused()).id, "version-4998");
    assert.ok(performance.now() - before_ < 5000);
  });
});

test("what somebody wrote who means harm is text, wherever it is shown", async () => {
  const evil = E(`evil ${SCRIPT}`);
  for (const [hash, texts] of [
    ["", [`id ${IMAGE}`, `actor ${SCRIPT}`, `reason ${SCRIPT}`]],
    ["#/collections", [`evil ${SCRIPT}`]],
    [`#/collections/${evil}`, [`id ${IMAGE}`, 'title: "\\"><img src=x']],
    [`#/documents/${evil}/${E(`id ${IMAGE}`)}?a=1&b=2`, [SCRIPT, "onerror"]],
    [`#/documents/${evil}/${E(`id ${IMAGE}`)}`, [`${SCRIPT}=${IMAGE}`, SCRIPT]],
    [`#/audit?actor=${E(`actor ${SCRIPT}`)}`, [`reason ${IMAGE}`]],
    ["#/queues", [`queue ${SCRIPT}`]],
    [`#/queues/${E(`queue ${SCRIPT}`)}`, ['payload: "<script>']],
    ["#/leases", [`lease ${SCRIPT}`, `holder ${IMAGE}`, `${SCRIPT}=${IMAGE}`]],
    ["#/subscriptions", [`subscription ${SCRIPT}`]],
    [`#/enrollments/students/students/${E(`student ${SCRIPT}`)}`, [`class ${IMAGE}`]],
    [`#/enrollments/students/classes/${E(`class ${IMAGE}`)}`, [`student ${SCRIPT}`]],
    [`#/documents/${E(SCRIPT)}/${E(IMAGE)}`, ["Not there", SCRIPT]],
    [`#/feed?after=0&collections=${evil}`, [`id ${IMAGE}`]],
    [`#/verify/${evil}`, [SCRIPT]],
    [`#/transactions/${E(SCRIPT.replaceAll(" ", ""))}`, ["TRANSACTION_NOT_FOUND"]],
  ]) {
    await visiting({}, async (visit) => {
      await visit.go(hash);
      for (const text of texts) await visit.says(text);
    });
  }
  // A message, by its link.
  await visiting({}, async (visit) => {
    await visit.go(`#/queues/${E(`queue ${SCRIPT}`)}`);
    await visit.press("j", "Enter");
    await visit.says("Headers");
    await visit.says(`${SCRIPT}=${IMAGE}`);
  });
});

test("a server that stops is told of, asked again, and gone on with", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/documents/sensors/long");
    await visit.says("100 versions so far.");
    await server.stop();
    await visit.press("n");
    await visit.says("The server does not answer.", "#banner");
    await visit.says("This goes on by itself when the server is back.");
    await visit.find("button", "Try now");
    assert.equal(await visit.page.$$eval(".entry", (all) => all.length), 100, "what was there stays");
    assert.deepEqual(await visit.axe(), []);
    if (SCREENSHOTS) await visit.screenshot(SCREENSHOTS, "stopped-1280-light");
    // A view that is opened meanwhile says so too, and comes by itself as well.
    await visit.press("g", "c");
    await visit.says("The server does not answer");
    await server.startAgain();
    await visit.says("books");
    await visit.page.waitForFunction(() => document.getElementById("banner").innerText === "");
    await visit.page.goBack();
    await visit.says("sensor 7");
  });
});

test("a verification shows its progress and its verdict, and may be stopped", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/verify/books");
    await visit.click("button", "Verify now");
    await visit.says("✓ Whole.");
    await visit.says("24 documents, 4");
    assert.equal((await visit.focused()).text, "Verify again");
    await visit.click("link", "Compare the ledger with this head");
    await visit.click("button", "Verify now");
    await visit.says("✓ Whole.");
    // A head that this ledger never had.
    await visit.go(`#/verify?position=1&hash=${"ab".repeat(32)}`);
    await visit.click("button", "Verify now");
    await visit.says("✗ Not whole.");
    await visit.says("CHAIN_BROKEN");
  });
});

test("the feed shows what is committed as it happens, and goes on after a break with none missing", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/feed?collections=books");
    await visit.says("Live at commit");
    await server.fill("sell", "hamlet");
    await visit.says("hamlet");
    await visit.says("1 received");
    await visit.click("button", "Pause");
    await visit.says("Paused.");
    await server.fill("sell", "walden");
    await visit.click("button", "Go on");
    await visit.says("walden");
    await server.stop();
    await visit.says("The server does not answer.", "#banner");
    await server.startAgain();
    await server.fill("sell", "persuasion");
    await visit.says("persuasion");
    await visit.says("3 received");
  });
});

test("recent changes say that there are newer ones, and show them when asked", async () => {
  await visiting({}, async (visit) => {
    await visit.go("");
    await visit.says("books/");
    // The page has looked how far the ledger has come before anything is written.
    await visit.page.waitForFunction(() =>
      performance
        .getEntriesByType("resource")
        .some(({ name, responseEnd }) => name.endsWith("FeedService/GetFeed") && responseEnd > 0),
    );
    await server.fill("sell", "ulysses");
    await visit.click("button", "1 new commit: show");
    await visit.says("ulysses");
  });
});

test("what is wrong in a form is said at its field, and the server's refusals in words", async () => {
  await visiting({}, async (visit) => {
    await visit.go("#/collections/books");
    await visit.page.type("#field-where", '{"stock": ');
    await visit.press("Enter");
    await visit.says("No JSON:");
    assert.equal((await visit.focused()).id, "field-where");
    await visit.go(`#/collections/books?where=${E('{"stock": {"$gte2": 1}}')}`);
    await visit.says("The server does not understand this");
    await visit.says("INVALID_FILTER");
    await visit.go("#/audit");
    await visit.page.type("#field-from", "yesterday-ish");
    await visit.press("Enter");
    await visit.says("No time.");
    await visit.go("#/documents/books/moby?version=77");
    await visit.says("77");
    await visit.go("#/documents/books/moby?a=1&b=77");
    await visit.says("VERSION_NOT_FOUND");
    await visit.go("#/collections/nope");
    await visit.says("COLLECTION_NOT_FOUND");
  });
});

test("a caller known by token is asked for it, it stays in memory, and what is not permitted says what is missing", async () => {
  const { token, line } = await newToken("ann");
  const policy = JSON.stringify({
    grants: [
      { principals: ["user:writer"], role: "admin", resources: ["*"] },
      { principals: ["user:ann"], role: "reader", resources: ["collection/books"] },
    ],
  });
  const writer = await newToken("writer");
  const guarded = await Server.start({
    arguments: ["--engine", "memory", "--tokens", "FOLDER/tokens", "--policy", "FOLDER/policy.json"],
    files: { tokens: `${line}\n${writer.line}\n`, "policy.json": policy },
  });
  try {
    await visiting({ origin: guarded.origin }, async (visit) => {
      await visit.page.goto(`${guarded.origin}/#/collections`);
      await visit.find("dialog", "The server asks for a token");
      assert.deepEqual(await visit.axe(), []);
      if (SCREENSHOTS) await visit.screenshot(SCREENSHOTS, "token-1280-light");
      assert.equal(await visit.page.$eval("#token", (input) => input.type), "password");
      await visit.page.type("#token", "wrong");
      await visit.press("Enter");
      await visit.says("is unknown here", "dialog");
      await visit.page.type("#token", token);
      await visit.press("Enter");
      await visit.says("There is no collection that you may read.");
      await visit.says("on memory, up since", "footer");
      const kept = await visit.page.evaluate(async () =>
        JSON.stringify([
          { ...localStorage },
          { ...sessionStorage },
          document.cookie,
          location.href,
          history.state,
          await indexedDB.databases(),
          await caches.keys().catch(() => []),
          document.documentElement.outerHTML,
          [...document.querySelectorAll("input")].map((input) => input.value),
        ]),
      );
      assert.ok(!kept.includes(token), "the token is somewhere");
      await visit.press("g", "a");
      await visit.says("Not permitted");
      await visit.says("Missing: audit on collection/*.");
      assert.deepEqual(await visit.axe(), []);
      if (SCREENSHOTS) await visit.screenshot(SCREENSHOTS, "denied-1280-light");
      await visit.click("button", "Forget the token");
      await visit.find("dialog", "The server asks for a token");
      await visit.press("Escape");
      await visit.says("The server does not know the caller");
      await visit.click("button", "Enter a token");
      await visit.find("dialog", "The server asks for a token");
      await visit.page.reload();
      await visit.find("dialog", "The server asks for a token");
    });
  } finally {
    await guarded.close();
  }
});
