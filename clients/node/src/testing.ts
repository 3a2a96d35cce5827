// A server for tests, gone with the process that started it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface ServerOptions {
  /** The program. Default: $STRATAD, else "stratad" on PATH. */
  stratad?: string;
  /** Further arguments. "--data" and "--engine" replace the memory engine, "--listen" the free port. */
  args?: readonly string[];
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class Server {
  private constructor(
    private readonly child: ChildProcess,
    /** "127.0.0.1:40123". */
    readonly target: string,
  ) {}

  /** Resolves once it serves. */
  static async start(options: ServerOptions = {}): Promise<Server> {
    const given = options.args ?? [];
    const has = (name: string) => given.some((argument) => argument === name || argument.startsWith(`${name}=`));
    const args = [...given];
    if (!has("--engine") && !has("--data")) args.push("--engine", "memory");
    if (!has("--listen")) args.push("--listen", "127.0.0.1:0");
    const program = options.stratad ?? process.env.STRATAD ?? "stratad";
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    child.once("exit", () => running.delete(child));
    let log = "";
    child.stderr!.on("data", (text) => (log = (log + text).slice(-4000)));
    const target = await new Promise<string>((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`cannot start ${program}: ${error.message}; STRATAD names the server`)));
      child.once("exit", (code) => reject(new Error(`${program} ended with ${code}: ${log}`)));
      createInterface(child.stdout!).on("line", (line) => {
        const match = /^stratad: serving strata\.v1 on (\S+?)[,;.]?(\s|$)/.exec(line);
        if (match !== null) resolve(match[1]!);
      });
    });
    // A server that still runs does not keep a test from ending.
    child.unref();
    for (const pipe of [child.stdout, child.stderr]) (pipe as unknown as { unref(): void }).unref();
    return new Server(child, target);
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Ends it, at once with "SIGKILL"; resolves when it is gone. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.ref();
    const gone = once(this.child, "exit");
    this.child.kill(signal);
    const late = setTimeout(() => this.child.kill("SIGKILL"), 5000);
    await gone;
    clearTimeout(late);
  }
}

// Where the language has `await using`, a server can be declared with it.
if (Symbol.asyncDispose) {
  Object.defineProperty(Server.prototype, Symbol.asyncDispose, {
    value(this: Server) {
      return this.stop();
    },
  });
}

export interface Server extends AsyncDisposable {}
