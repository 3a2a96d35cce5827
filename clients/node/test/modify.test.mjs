// Writers in processes of their own increment one number by modify, while the server is killed again and again: in the end each
// increment has counted exactly once. RACE=8x500x20 makes it 8 processes, 500 increments each, 20 kills.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "strata-documents";

import { LastingServer, sleep } from "./servers.mjs";

const [writers, times, kills] = (process.env.RACE ?? "4x100x3").split("x").map(Number);
const worker = fileURLToPath(new URL("modify_worker.mjs", import.meta.url));

function run(target) {
  const child = spawn(process.execPath, [worker, target, String(times)], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  return new Promise((resolve) => child.once("exit", (code) => resolve({ code, done: Number(said) })));
}

test(`${writers} processes x ${times} increments through ${kills} kills are ${writers * times}`, { timeout: 1_800_000 }, async () => {
  const server = await LastingServer.start();
  const client = new Client({ target: server.target, retryFor: 60_000 });
  try {
    const counter = async () => Number((await client.collection("counters").get("one"))?.content.n ?? 0);
    await client.collection("counters").create("one", { n: 0 });
    const runs = Promise.all(Array.from({ length: writers }, () => run(server.target)));
    let over = false;
    runs.then(() => (over = true));
    let killed = 0;
    while (killed < kills && !over) {
      // At even parts of the way, however fast the machine is.
      while (!over && (await counter()) < (writers * times * (killed + 1)) / (kills + 2)) await sleep(20);
      if (over) break;
      await server.kill();
      killed++;
      await server.begin();
    }
    const ends = await runs;
    assert.equal(killed, kills, "the server was killed as often as it was to be");
    assert.deepEqual(ends, Array.from({ length: writers }, () => ({ code: 0, done: times })));
    assert.equal(await counter(), writers * times);
    const versions = [];
    for await (const version of client.collection("counters").history("one", { pageSize: 1000 })) versions.push(version);
    assert.equal(versions.length, writers * times + 1, "no increment made two versions");
  } finally {
    client.close();
    await server.stop();
  }
});
