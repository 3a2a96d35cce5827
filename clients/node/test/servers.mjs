// Servers that a test stops at will: on a directory of their own, and after each kill on the port that they had.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const stratad = process.env.STRATAD ?? "stratad";

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const answers = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => { socket.destroy(); resolve(true); });
    socket.once("error", () => resolve(false));
  });

/** A server that keeps its data over kill and start. */
export class LastingServer {
  static async start() {
    const server = new LastingServer();
    server.data = mkdtempSync(join(tmpdir(), "strata-node-"));
    server.port = await freePort();
    server.target = `127.0.0.1:${server.port}`;
    await server.begin();
    return server;
  }

  async begin() {
    this.child = spawn(stratad, ["--data", this.data, "--listen", this.target], { stdio: ["ignore", "ignore", "pipe"] });
    this.said = "";
    this.child.stderr.on("data", (text) => (this.said = (this.said + text).slice(-4000)));
    this.ended = new Promise((resolve) => {
      this.child.once("exit", resolve);
      this.child.once("error", (error) => resolve((this.said += error.message)));
    });
    for (let i = 0; i < 600; i++) {
      if (await answers(this.port)) return;
      if (this.child.exitCode !== null || this.child.pid === undefined) break;
      await sleep(50);
    }
    throw new Error(`stratad does not serve: ${this.said}`);
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    await this.kill();
    rmSync(this.data, { recursive: true, force: true });
  }
}
