// A stream in both directions that is begun again when it breaks: what Consumer and Receiver stand on.
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { ClientDuplexStream } from "@grpc/grpc-js";

import { type Attempts, type Core, isServiceError } from "./core.js";
import { type Refusal, kUnavailable, refusalOf } from "./errors.js";

const kClosePatience = 10_000;

/** What a stream ended with; one that ended well although it was to last counts as a lost connection. */
export const failure = (error: unknown): Refusal =>
  isServiceError(error) ? refusalOf(error) : { code: kUnavailable, reason: "", message: "the stream ended", metadata: {} };

const draining = new WeakMap<object, Promise<void>>();

/** Writes with back pressure: resolves once the stream takes more, or has ended. */
export function written(stream: ClientDuplexStream<any, any>, message: Message): Promise<void> {
  if (stream.destroyed || stream.writableEnded || stream.write(message)) return Promise.resolve();
  let drained = draining.get(stream);
  if (drained === undefined) {
    // One for all who wait: a stream warns of more than a few listeners.
    drained = new Promise((resolve) => {
      const events = ["drain", "close", "error", "status"];
      const done = () => {
        for (const event of events) stream.off(event, done);
        draining.delete(stream);
        resolve();
      };
      for (const event of events) stream.on(event, done);
    });
    draining.set(stream, drained);
  }
  return drained;
}

/** Reads in the background, so that what is told counts at once, also while the caller works on an item. */
export abstract class Duplex<Response, Item> implements AsyncIterable<Item> {
  private readonly attempts: Attempts;
  private stream: ClientDuplexStream<any, any> | undefined;
  private running: Promise<void> | undefined;
  private failed: { error: unknown } | undefined;
  private closing = false;
  private givenUp = false;
  private over = false;
  private wake = () => {};
  private woken = new Promise<void>((resolve) => (this.wake = resolve));
  private skip = () => {};

  constructor(
    protected readonly core: Core,
    private readonly method: DescMethod,
    private readonly signal: AbortSignal | undefined,
  ) {
    // What is lost comes again; a stream that is begun anew does no harm.
    this.attempts = core.attempts(Idempotency.NO_SIDE_EFFECTS);
    this.attempts.streams = true;
  }

  /** A stream begins; what was said over the one before was perhaps not heard. */
  protected abstract opened(): void;
  protected abstract heard(response: Response): void;
  /** What came over the stream that broke counts for nothing. */
  protected abstract lost(): void;
  /** What is given next. */
  protected abstract take(): Item | undefined;
  /** Whether something is to be said, or to be answered. */
  protected owes(): boolean {
    return false;
  }
  /** Whether all was said. */
  protected mayLeave(): boolean {
    return true;
  }
  /** There will be no further stream. */
  protected ended(): void {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    if (!this.closing) this.running ??= this.run();
    try {
      for (;;) {
        const item = this.closing ? undefined : this.take();
        if (item !== undefined) yield item;
        else if (this.failed !== undefined) throw this.failed.error;
        else if (this.over || this.closing) return;
        else await this.woken;
      }
    } finally {
      await this.close();
    }
  }

  protected get isOpen(): boolean {
    return this.running !== undefined && !this.closing && !this.over;
  }

  /** Resolves once the stream takes more. Without a stream nothing is said. */
  protected send(message: Message): Promise<void> {
    return this.stream === undefined ? Promise.resolve() : written(this.stream, message);
  }

  private notify(): void {
    this.wake();
    this.woken = new Promise((resolve) => (this.wake = resolve));
  }

  /** Half-closes, once all is said. */
  protected leave(): void {
    if (this.closing && this.stream !== undefined && !this.stream.writableEnded && this.mayLeave()) this.stream.end();
  }

  private async run(): Promise<void> {
    const abort = () => {
      this.stream?.cancel();
      this.skip();
    };
    this.signal?.addEventListener("abort", abort, { once: true });
    try {
      while (await this.oneStream());
    } catch (error) {
      this.failed = { error };
    }
    this.signal?.removeEventListener("abort", abort);
    this.over = true;
    this.lost();
    this.ended();
    this.notify();
  }

  // Whether there is to be another one.
  private async oneStream(): Promise<boolean> {
    if (this.signal?.aborted) throw this.attempts.aborted(this.signal, false);
    if (this.givenUp || (this.closing && !this.owes())) return false;
    const stream = this.core.duplex(this.method);
    // What it ends with the loop below learns.
    stream.on("error", () => {});
    this.stream = stream;
    this.opened();
    this.leave();
    let failed: unknown;
    try {
      for await (const response of stream) {
        this.attempts.succeeded();
        this.heard(response as Response);
        this.leave();
        this.notify();
      }
    } catch (error) {
      failed = error;
    }
    this.stream = undefined;
    this.lost();
    if (this.givenUp || (this.closing && !this.owes())) return false;
    if (this.signal?.aborted) throw this.attempts.aborted(this.signal, false);
    if (failed !== undefined && !isServiceError(failed)) {
      stream.cancel();
      throw failed;
    }
    const pause = this.attempts.failed(failure(failed));
    if (pause === undefined) throw this.attempts.error();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause);
      this.skip = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.skip = () => {};
    return true;
  }

  /** Says that there is no more, once all is said, and waits until the server has taken it in, for ten seconds at most. */
  async close(): Promise<void> {
    if (!this.closing) {
      this.closing = true;
      this.lost();
      this.leave();
      if (!this.owes()) this.skip();
      this.notify();
    }
    if (this.running === undefined || this.over) return;
    const patience = setTimeout(() => {
      this.givenUp = true;
      this.stream?.cancel();
      this.skip();
    }, kClosePatience);
    await this.running;
    clearTimeout(patience);
  }
}
