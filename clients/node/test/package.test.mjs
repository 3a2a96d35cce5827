// The package as npm packs it, installed without network into an empty folder, where the examples of clients/node/README.md run.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Server } from "strata-documents/testing";

const root = fileURLToPath(new URL("..", import.meta.url));

// The packages below node_modules that a package needs, from the lock file: those that are for development are left out.
function needed() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return Object.keys(packages).filter((path) => path !== "" && !packages[path].dev);
}

test("the packed package works in an empty folder, without network", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "strata-package-"));
  const server = await Server.start();
  try {
    // dist is there: check has built it.
    const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { cwd: root, encoding: "utf8" });
    const [{ filename, files }] = JSON.parse(packed);
    const names = files.map((file) => file.path);
    for (const name of ["dist/index.js", "dist/index.d.ts", "dist/testing.js", "dist/testing.d.ts", "README.md"]) {
      assert.ok(names.includes(name), `${name} is in the package`);
    }
    assert.deepEqual(names.filter((name) => !/^(dist\/|README\.md$|package\.json$)/.test(name)), []);

    // What the package needs is packed from here; that npm finds its versions right is part of the test. By tar, as npm 9 would
    // run the scripts by which these packages are made from their sources.
    const archives = {};
    for (const path of needed()) {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      const archive = `${name.replaceAll("/", "-")}.tgz`;
      execFileSync("tar", ["-czf", join(folder, archive), "--exclude=./node_modules", "--transform=s,^[.],package,", "-C", join(root, path), "."]);
      archives[name] = `file:${archive}`;
    }
    const manifest = { private: true, type: "module", dependencies: { ...archives, "strata-documents": `file:${filename}` } };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    // A cache of its own, which is empty: nothing comes from what was downloaded before.
    execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", join(folder, "cache")], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    const modules = join(folder, "node_modules");

    const readme = readFileSync(join(modules, "strata-documents", "README.md"), "utf8");
    const example = /```js\n([^]*?)```/.exec(readme)[1];
    assert.ok(example.trim().split("\n").length <= 20, "the example has 20 lines at most");
    writeFileSync(join(folder, "example.js"), example.replace("127.0.0.1:50051", server.target));
    const said = execFileSync(process.execPath, ["example.js"], { cwd: folder, encoding: "utf8", timeout: 20_000 });
    const expected = /```text\n([^]*?)```/.exec(readme)[1];
    assert.equal(said, expected);

    // A CommonJS program loads it too.
    writeFileSync(
      join(folder, "common.cjs"),
      `(async () => {
        const { Client } = await import("strata-documents");
        const client = new Client(${JSON.stringify(server.target)});
        console.log((await client.serverInfo()).engine);
        client.close();
      })();`,
    );
    assert.equal(execFileSync(process.execPath, ["common.cjs"], { cwd: folder, encoding: "utf8", timeout: 20_000 }), "memory\n");

    // The example of the repository's README, as a newcomer's file in that folder.
    execFileSync(join(root, "../examples"), ["node", "--in", folder, process.execPath], { stdio: ["ignore", "ignore", "inherit"], timeout: 30_000 });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
