// What the compiler has to refuse, and what it has to take. Compiled by check, never run.
import { type Document, Client, increment, set } from "strata-documents";

interface Book {
  title: string;
  stock: number;
  bought?: Date;
}

const client = new Client({ target: "127.0.0.1:50051", int64: "bigint" });
const books = client.collection<Book>("books");

export async function taken(): Promise<void> {
  const written = await books.create("moby", { title: "Moby-Dick", stock: 3 }, { reason: "new" });
  const version: bigint = written.document.version;
  const book: Document<Book> | undefined = await books.get("moby");
  const title: string | undefined = book?.content?.title;
  await books.update("moby", { operations: [increment("/stock", -1), set("/title", "x")] }, { ifVersion: version });
  await books.update("moby", { merge: { stock: 2 } });
  await books.modify("moby", (content) => (content === undefined ? undefined : { ...content, stock: content.stock - 1 }), { reason: "sold" });
  for await (const each of books.list({ idPrefix: "m", filter: { stock: { $gt: 0 } } })) console.log(each.content?.stock, title);
  for await (const each of books.history("moby", { includeContent: true })) console.log(each.version, each.change?.reason);
}

export async function refused(): Promise<void> {
  // @ts-expect-error a member is missing
  await books.create("moby", { title: "Moby-Dick" });
  // @ts-expect-error a member has another type
  await books.create("moby", { title: "Moby-Dick", stock: "3" });
  // @ts-expect-error a content is no text
  await books.update("moby", { replace: "text" });
  // @ts-expect-error modify gives a content or undefined
  await books.modify("moby", () => 1);
  // @ts-expect-error a misspelt option
  await books.update("moby", { replace: { title: "", stock: 1 } }, { ifVerison: 1n });
  // @ts-expect-error get may find nothing
  (await books.get("moby")).content;
  // @ts-expect-error a version is a bigint
  const version: number = (await books.get("moby"))!.version;
  // @ts-expect-error int64 is "bigint" or "long"
  new Client({ target: "127.0.0.1", int64: "number" });
  // @ts-expect-error times are Dates
  await books.get("moby", { atTime: "2026-01-31" });
  console.log(version);
}
