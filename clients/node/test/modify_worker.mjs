// One writer of the race: TARGET TIMES. Prints how often it was told "done".
import { Client } from "strata-documents";

const [target, times] = process.argv.slice(2);
const client = new Client({ target, actor: `writer ${process.pid}`, timeout: 5_000, retryFor: 120_000 });
const counters = client.collection("counters");
let done = 0;
for (let i = 0; i < Number(times); i++) {
  const written = await counters.modify("one", (content) => ({ n: (content?.n ?? 0) + 1 }), { reason: "race" });
  if (written.changed) done++;
}
client.close();
console.log(done);
