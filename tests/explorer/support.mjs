// What the tests of the explorer share: a server with data, a browser, pages that note whatever must not happen, and keys.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import puppeteer from "puppeteer-core";

const run = promisify(execFile);
const HERE = fileURLToPath(new URL(".", import.meta.url));
export const ROOT = join(HERE, "../..");
export const EXPLORER = join(ROOT, "service/http/explorer");
const STRATAD = process.env.STRATAD ?? join(ROOT, "build/service/stratad");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const PYTHON = process.env.PYTHON ?? "/usr/bin/python3";
export const PATIENCE_MS = 20_000;
export const SCREENSHOTS = process.env.EXPLORER_SCREENSHOTS ?? "";

// What fill.py writes where harm is meant.
export const SCRIPT = "<script>window.hacked = true</script>";
export const IMAGE = '"><img src=x onerror="window.hacked = true">';
export const E = encodeURIComponent;

// Where the server says that it listens, for gRPC and for HTTP.
const ADDRESSES = [/serving strata\.v1 on (\S+) \(/, /HTTP port at http:\/\/([^\s/]+)/];

/** A server on temporary data and free ports, which may be stopped, and started again on the ports that it had. */
export class Server {
  static async start({ arguments: more = [], files = {} } = {}) {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), "explorer-"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(server.folder, name), text, { mode: 0o600 });
    server.more = more.map((argument) => argument.replace("FOLDER", server.folder));
    await server.begin("127.0.0.1:0", "127.0.0.1:0");
    return server;
  }
  async begin(grpc, http) {
    const flags = ["--listen", grpc, "--http-listen", http, "--log-level", "warning"];
    if (!this.more.includes("memory"))
      flags.push("--data", join(this.folder, "data"), "--disk-reserve-mib", "0", "--ballast-mib", "0");
    this.process = spawn(STRATAD, [...flags, ...this.more], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const found = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the server does not serve: ${said}`)), 60_000);
      const take = (data) => {
        said += data;
        const addresses = ADDRESSES.map((pattern) => pattern.exec(said)?.[1]);
        if (addresses.every(Boolean)) {
          clearTimeout(late);
          resolve(addresses);
        }
      };
      this.process.stdout.on("data", take);
      this.process.stderr.on("data", take);
      this.process.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
      this.process.once("error", reject);
    });
    [this.target, this.http] = found;
    this.origin = `http://${this.http}`;
  }
  async stop(signal = "SIGTERM") {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }
  async startAgain() {
    await this.begin(this.target, this.http);
  }
  async close() {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
  /** fill.py, on this server. */
  async fill(...words) {
    const { stderr } = await run(PYTHON, [join(HERE, "fill.py"), this.target, ...words.map(String)], { timeout: 120_000 });
    return stderr;
  }
}

/** A token of `stratad token` and its line for the tokens file. */
export async function newToken(name) {
  const { stdout } = await run(STRATAD, ["token", name]);
  const [token, line] = stdout.trim().split("\n");
  return { token, line };
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launch() {
  // As root there is no sandbox; in a container /dev/shm may be small.
  return puppeteer.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    protocolTimeout: 120_000,
  });
}

/** A server with data, and a browser. */
export async function openWorld({ versions }) {
  // One transaction in two phases is held while it is pending, so that there is one to be seen.
  const [server, browser] = await Promise.all([
    Server.start({ arguments: ["--hold-transactions-after", "first-slot"] }),
    launch(),
  ]);
  const close = async () => {
    await browser.close();
    await server.close();
  };
  try {
    await server.fill("fill", versions);
  } catch (error) {
    await close();
    throw error;
  }
  return { server, browser, close };
}

/** A page that notes requests elsewhere, errors and violations of the policy; `check()` fails if there was one. */
export class Visit {
  static async open(browser, origin, { width = 1280, height = 860, scheme = "light" } = {}) {
    const visit = new Visit();
    visit.origin = origin;
    visit.context = await browser.createBrowserContext();
    visit.page = await visit.context.newPage();
    visit.foul = [];
    visit.requests = 0;
    const { page } = visit;
    page.setDefaultTimeout(PATIENCE_MS);
    // Not the zone of UTC, so that the two cannot be confused.
    await page.emulateTimezone("Europe/Berlin");
    await visit.look({ width, height, scheme });
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`),
      );
    });
    page.on("request", (request) => {
      visit.requests++;
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && url !== "about:blank") visit.foul.push(`request of ${url}`);
    });
    page.on("pageerror", (error) => visit.foul.push(`error: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      // The browser itself says so of each refused or failed call. What the page makes of those is looked at elsewhere.
      if (/^Failed to load resource/.test(message.text())) return;
      visit.foul.push(`console: ${message.text()}`);
    });
    return visit;
  }
  async look({ width, height = 860, scheme }) {
    if (width) await this.page.setViewport({ width, height });
    if (scheme)
      await this.page.emulateMediaFeatures([
        { name: "prefers-color-scheme", value: scheme },
        { name: "prefers-reduced-motion", value: "reduce" },
      ]);
  }
  /** Loads a view by its URL, as a link in a mail would. */
  async go(hash) {
    await this.page.goto("about:blank");
    await this.page.goto(`${this.origin}/${hash}`, { waitUntil: "load" });
    await this.settled();
  }
  /** Until the view has loaded all that it begins with. */
  async settled() {
    await this.page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main [aria-busy=true]"));
  }
  text(selector = "main") {
    return this.page.$eval(selector, (element) => element.innerText);
  }
  async says(text, selector = "main") {
    await this.page
      .waitForFunction((wanted, where) => document.querySelector(where)?.innerText.includes(wanted), {}, text, selector)
      .catch(async () =>
        assert.fail(`${selector} does not say "${text}", but: ${await this.text(selector).catch(() => "nothing")}`),
      );
  }
  /** An element by its role and its accessible name. */
  async find(role, name) {
    return this.page
      .waitForSelector(`::-p-aria([name="${name}"][role="${role}"])`)
      .catch(() => assert.fail(`there is no ${role} "${name}"`));
  }
  async click(role, name) {
    await (await this.find(role, name)).click();
  }
  /** By what it says: quick where the tree of roles would be one of ten thousand rows. */
  async clickText(tag, text) {
    const found = await this.page.waitForFunction(
      (name, wanted) => [...document.querySelectorAll(name)].find((element) => element.innerText === wanted),
      {},
      tag,
      text,
    );
    await found.asElement().click();
  }
  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }
  /** What has the focus: its role-like tag, text or name, and whether a reader sees that it does. */
  focused() {
    return this.page.evaluate(() => {
      const element = document.activeElement;
      const name = element.getAttribute("aria-label") ?? element.closest("label")?.innerText ?? element.innerText ?? "";
      const style = getComputedStyle(element);
      return {
        tag: element.localName,
        id: element.id,
        text: name.trim().replace(/\s+/g, " "),
        outlined: style.outlineStyle !== "none" && style.outlineWidth !== "0px",
      };
    });
  }
  /** Tabs until `wanted(focused)`. */
  async tabTo(wanted, { most = 80, key = "Tab" } = {}) {
    const seen = [];
    for (let i = 0; i < most; i++) {
      await this.press(key);
      const focused = await this.focused();
      seen.push(`${focused.tag}#${focused.id} ${focused.text.slice(0, 30)}`);
      if (wanted(focused)) return focused;
    }
    return assert.fail(`not reached by ${key}: ${seen.join(" | ")}`);
  }
  async scrollsSideways() {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }
  /** Serious and critical findings of axe, in words. `rules`: only those. */
  async axe(rules) {
    await this.page.evaluate(axeSource);
    const found = await this.page.evaluate(async (only) => {
      const result = await window.axe.run(document, {
        resultTypes: ["violations"],
        ...(only ? { runOnly: { type: "rule", values: only } } : {}),
      });
      return result.violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(
          ({ id, impact, nodes }) =>
            `${impact} ${id}: ${nodes
              .slice(0, 3)
              .map((node) => `${node.target} (${node.any[0]?.message ?? node.all[0]?.message ?? ""})`)
              .join("; ")}`,
        );
    }, rules);
    return found;
  }
  /** Nothing happened that must not: nothing came from elsewhere, nothing of the data ran, no error, no violation of the policy. */
  async check() {
    const state = await this.page.evaluate(() => ({
      violations: window.violations ?? [],
      hacked: window.hacked === true,
      foreign: [
        ...document.querySelectorAll("main :is(script, img, iframe, object, embed, style, [onerror], [onclick], [style])"),
      ].map((element) => element.outerHTML),
    }));
    // Each finding counts once, for the test that brought it about.
    assert.deepEqual([...this.foul.splice(0), ...state.violations], []);
    assert.equal(state.hacked, false, "something of the data ran");
    assert.deepEqual(state.foreign, [], "the data became elements");
    assert.ok(this.requests > 0);
  }
  async screenshot(folder, name) {
    await mkdir(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
  async close() {
    await this.context.close();
  }
}
