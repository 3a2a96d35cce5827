// What a call costs besides the call itself: this client against the raw stub (grpc-js and protobuf-es, contents as bytes that were made
// before and are not looked at), at 1 and 64 in flight.
// node bench/overhead.mjs [TARGET]: without TARGET against a server in memory of its own. Rounds of both take turns, so that what
// else the machine does meets both; the median of the rounds counts.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { BSON } from "bson";
import { randomUUID } from "node:crypto";
import { Client } from "strata-documents";
import { Server } from "strata-documents/testing";

import { DocumentService, GetRequestSchema, GetResponseSchema, UpdateRequestSchema, UpdateResponseSchema } from "../dist/gen/strata/v1/document_service_pb.js";

const own = process.argv[2] === undefined ? await Server.start() : undefined;
const target = process.argv[2] ?? own.target;
const calls = Number(process.env.CALLS ?? 4000);
const rounds = Number(process.env.ROUNDS ?? 7);

const client = new Client({ target });
const books = client.collection("bench");
const raw = new grpc.Client(target, grpc.credentials.createInsecure(), {});
const content = { title: "Moby-Dick", authors: ["Herman Melville"], stock: 3, price: 12.5, tags: ["whale", "sea"], seen: new Date(0) };
for (let i = 0; i < 64; i++) await books.update(`d${i}`, { replace: content }, { allowMissing: true });

function stub(method, request, response) {
  const path = `/${DocumentService.typeName}/${method}`;
  const write = (message) => Buffer.from(toBinary(request, message));
  const read = (bytes) => fromBinary(response, bytes);
  return (message) =>
    new Promise((resolve, reject) =>
      raw.makeUnaryRequest(path, write, read, message, new grpc.Metadata(), { deadline: Date.now() + 30_000 }, (error, answer) => (error ? reject(error) : resolve(answer))),
    );
}
const rawGet = stub("Get", GetRequestSchema, GetResponseSchema);
const rawUpdate = stub("Update", UpdateRequestSchema, UpdateResponseSchema);

const made = Array.from({ length: 1000 }, (_, stock) => BSON.serialize({ ...content, stock }));
let n = 0;
const ways = {
  get: {
    client: (i) => books.get(`d${i}`),
    raw: (i) => rawGet(create(GetRequestSchema, { collection: "bench", id: `d${i}`, encoding: 2 })),
  },
  update: {
    client: (i) => books.update(`d${i}`, { replace: { ...content, stock: n++ } }),
    raw: (i) => {
      const body = { case: "bson", value: made[n++ % made.length] };
      return rawUpdate(create(UpdateRequestSchema, { collection: "bench", id: `d${i}`, encoding: 2, requestId: randomUUID(), newContent: { case: "replace", value: { body } } }));
    },
  },
};

async function round(call, inFlight) {
  let left = calls / (inFlight === 1 ? 4 : 1);
  const total = left;
  const begun = performance.now();
  await Promise.all(Array.from({ length: inFlight }, async (_, i) => { while (left-- > 0) await call(i); }));
  return ((performance.now() - begun) * 1000) / total;
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
for (const [name, { client: ours, raw: theirs }] of Object.entries(ways)) {
  for (const inFlight of [1, 64]) {
    const times = { ours: [], theirs: [] };
    await round(theirs, inFlight);
    await round(ours, inFlight);
    for (let i = 0; i < rounds; i++) {
      times.theirs.push(await round(theirs, inFlight));
      times.ours.push(await round(ours, inFlight));
    }
    const [a, b] = [median(times.ours), median(times.theirs)];
    console.log(`${name}, ${inFlight} in flight: client ${a.toFixed(0)} us, stub ${b.toFixed(0)} us, overhead ${((a / b - 1) * 100).toFixed(0)} %`);
  }
}
client.close();
raw.close();
await own?.stop();
