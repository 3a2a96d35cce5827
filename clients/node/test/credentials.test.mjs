// Who calls: certificates and tokens against a server that asks for them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client, CredentialsInvalid, CredentialsMissing, PermissionDenied, StrataError } from "strata-documents";
import { Server } from "strata-documents/testing";

import { stratad } from "./servers.mjs";

const folder = mkdtempSync(join(tmpdir(), "strata-node-"));
const file = (name) => join(folder, name);
const openssl = (...parts) => execFileSync("openssl", parts, { cwd: folder, stdio: "pipe" });
const kEc = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];

function authority(name) {
  openssl("req", "-x509", ...kEc, "-days", "30", "-subj", `/CN=${name}`, "-keyout", `${name}-key.pem`, "-out", `${name}.pem`);
}

function certificate(name, called) {
  openssl("req", ...kEc, "-subj", `/CN=${name}`, "-addext", `subjectAltName=${called}`, "-keyout", `${name}-key.pem`, "-out", `${name}.csr`);
  openssl("x509", "-req", "-in", `${name}.csr`, "-copy_extensions", "copy", "-days", "30", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-out", `${name}.pem`);
}

let server;
let plain;
let token;
// What the server's certificate names, which is not the address.
const named = (one) => `localhost:${one.target.split(":").pop()}`;
const trusted = { authorities: file("ca.pem") };
const shop = { ...trusted, certificate: file("shop.pem"), key: file("shop-key.pem") };

before(async () => {
  authority("ca");
  authority("other");
  certificate("server", "DNS:localhost");
  certificate("shop", "URI:spiffe://example.org/shop");
  const [made, line] = execFileSync(stratad, ["token", "batch"], { encoding: "utf8" }).split("\n");
  token = made;
  writeFileSync(file("tokens"), `${line}\n`, { mode: 0o600 });
  chmodSync(file("server-key.pem"), 0o600);
  writeFileSync(
    file("policy.json"),
    JSON.stringify({
      grants: [
        { principals: ["spiffe://example.org/shop"], role: "writer", resources: ["collection/books"] },
        { principals: ["user:batch"], role: "reader", resources: ["collection/*"] },
      ],
    }),
  );
  const known = ["--tokens", file("tokens"), "--policy", file("policy.json")];
  const secured = ["--tls-certificate", file("server.pem"), "--tls-key", file("server-key.pem"), "--tls-client-ca", file("ca.pem"), "--tls-client", "optional"];
  server = await Server.start({ args: [...secured, ...known] });
  plain = await Server.start({ args: known });
});

after(async () => {
  await server?.stop();
  await plain?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function using(options, work) {
  const client = new Client(options);
  try {
    await work(client);
  } finally {
    client.close();
  }
}

const all = async (iterable) => {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
};

test("a certificate says who writes", () =>
  using({ target: named(server), tls: shop }, async (client) => {
    const books = client.collection("books");
    const { document } = await books.create("moby", { stock: 3 });
    assert.deepEqual(document.content, { stock: 3 });
    const [version] = await all(books.history("moby"));
    assert.equal(version.change.actor, "spiffe://example.org/shop");
    await assert.rejects(client.collection("secrets").create("x", {}), PermissionDenied);
  }));

test("the authorities that this machine trusts can be named by SSL_CERT_FILE", async () => {
  process.env.SSL_CERT_FILE = file("ca.pem");
  try {
    await using({ target: named(server), tls: true, token }, (client) => client.collection("books").get("none"));
    process.env.SSL_CERT_FILE = file("other.pem");
    await using({ target: named(server), tls: true, token, retryFor: 0 }, (client) =>
      assert.rejects(client.collection("books").get("none"), (error) => error.code === "UNAVAILABLE"));
  } finally {
    delete process.env.SSL_CERT_FILE;
  }
});

test("a token says who reads", async () => {
  await using({ target: named(server), tls: shop }, (client) => client.collection("books").update("first", { replace: {} }, { allowMissing: true }));
  await using({ target: named(server), tls: trusted, token }, async (client) => {
    assert.deepEqual((await client.collection("books").get("first")).content, {});
    await assert.rejects(client.collection("books").create("other", {}), (error) => error instanceof PermissionDenied && !error.outcomeUnknown);
  });
});

test("a token goes without TLS on this machine", () =>
  using({ target: plain.target, token }, async (client) => assert.deepEqual(await all(client.collections.list()), [])));

test("without a token credentials are missing", async () => {
  for (const options of [{ target: named(server), tls: trusted }, { target: plain.target }]) {
    await using(options, async (client) => {
      const missing = (error) => error instanceof CredentialsMissing && error.code === "UNAUTHENTICATED" && !error.outcomeUnknown;
      await assert.rejects(client.collection("books").create("moby", {}), missing);
      await assert.rejects(all(client.collections.list()), missing);
    });
  }
});

test("a token that is unknown is invalid", () =>
  using({ target: named(server), tls: trusted, token: token.slice(0, -1) + (token.endsWith("x") ? "y" : "x") }, (client) =>
    assert.rejects(client.collection("books").get("moby"), CredentialsInvalid)));

test("no other server is talked to", async () => {
  for (const options of [
    { target: named(server), tls: { authorities: file("other.pem") }, token }, // of another authority
    { target: server.target, tls: trusted, token }, // of another name
    { target: named(plain), tls: trusted, token }, // without a certificate
    { target: named(server) }, // with one where none is asked for
  ]) {
    await using({ ...options, retryFor: 0 }, (client) =>
      assert.rejects(client.collection("books").get("moby"), (error) => {
        assert.deepEqual([error.constructor, error.code, error.reason], [StrataError, "UNAVAILABLE", ""]);
        return true;
      }));
  }
});

test("what cannot be right is refused at once", () => {
  assert.throws(() => new Client({ target: named(server), tls: { certificate: file("shop.pem") } }), /certificate and key/);
  assert.throws(() => new Client({ target: named(server), tls: { authorities: file("none.pem") } }), /none\.pem/);
  assert.throws(() => new Client({ target: "strata.example.org", token }), /set option tls/);
});
