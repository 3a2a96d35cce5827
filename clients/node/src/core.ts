// The connection, and calls over it that are made again by the rules of clients/README.md, "Repetition".
import { type DescMessage, type DescMethod, type Message, fromBinary, toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import type { ReadOptions } from "./content.js";
import {
  AbortError,
  type Refusal,
  StrataError,
  isRetryable,
  isRetryableOnce,
  mayBeOfOwnDoing,
  kCancelled,
  kDeadlineExceeded,
  kNoConnection,
  leavesOutcomeUnknown,
  refusalOf,
} from "./errors.js";
import { classes } from "./gen/reasons.js";
import { messageOf, plainMessage } from "./messages.js";

/** Names of files (PEM). */
export interface Tls {
  /** Unset: those that this machine trusts, or of SSL_CERT_FILE. */
  authorities?: string;
  /** With its key: both or neither. */
  certificate?: string;
  key?: string;
}

export interface ClientOptions extends ReadOptions {
  /** "host:port", "host" (port 50051) or "[v6]:port". Default: "127.0.0.1:50051". */
  target?: string;
  /** true: the authorities that this machine trusts. Unset: no TLS. */
  tls?: boolean | Tls;
  /** Goes without TLS to this machine only. */
  token?: string;
  /** change.actor of each write that names none. */
  actor?: string;
  /** The deadline of one attempt, in milliseconds; of a call that waits at the server, besides its wait. Default: 30,000. */
  timeout?: number;
  /** How long after a call's first attempt the last one may begin, in milliseconds. 0: one attempt. Default: 30,000. */
  retryFor?: number;
  /** The same as long as no connection ever stood; also how long the first one may take. Default: 3,000. */
  connectTimeout?: number;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call with an AbortError. */
  signal?: AbortSignal | undefined;
}

export interface Target {
  address: string;
  loopback: boolean;
}

export function targetOf(text: string): Target {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text);
  if (scheme) {
    throw new TypeError(`target "${text}" begins with a scheme; write host:port, without ${scheme[0]} (gRPC needs none; TLS is option tls)`);
  }
  const match = /^(\[[0-9a-f:.%]+\]|[^:\s\/\[\]]+)(?::(\d{1,5}))?$/i.exec(text);
  if (match === null) throw new TypeError(`target "${text}" is not host:port, host or [v6]:port`);
  const port = match[2] === undefined ? 50051 : Number(match[2]);
  if (port < 1 || port > 65535) throw new TypeError(`target "${text}" has no port from 1 to 65535`);
  const host = match[1]!;
  const loopback = host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
  return { address: `${host}:${port}`, loopback };
}

// Node brings a list of its own, which does not know an authority that this machine was told to trust.
function systemAuthorities(): string | undefined {
  const named = process.env.SSL_CERT_FILE;
  if (named !== undefined && named !== "") return named;
  return ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"].find(existsSync);
}

function credentialsOf(tls: boolean | Tls | undefined): grpc.ChannelCredentials {
  if (!tls) return grpc.credentials.createInsecure();
  if (tls === true) tls = {};
  if ((tls.certificate === undefined) !== (tls.key === undefined)) throw new TypeError("tls needs certificate and key, or neither");
  const read = (file: string | undefined) => (file === undefined ? null : readFileSync(file));
  return grpc.credentials.createSsl(read(tls.authorities ?? systemAuthorities()), read(tls.key), read(tls.certificate));
}

/** Pause before repetition n, from 1, in milliseconds. */
export function pauseBefore(n: number, refusal?: Refusal): number {
  const longest = Math.min(5000, 100 * 2 ** Math.min(n - 1, 10));
  return Math.max(longest * (0.5 + Math.random() / 2), refusal?.retryDelay ?? 0);
}

function errorOf(refusal: Refusal, outcomeUnknown: boolean, requestId?: string): StrataError {
  const known = Object.hasOwn(classes, refusal.reason) ? classes[refusal.reason as keyof typeof classes] : StrataError;
  return new known(refusal, outcomeUnknown, requestId);
}

/** Why one item of a call failed, such as one message of a Push. */
export interface Part {
  code: number;
  reason: string;
  message: string;
  metadata: { [name: string]: string };
}

export function partErrorOf(part: Part): StrataError {
  const refusal = { code: part.code, reason: part.reason, message: part.message, metadata: part.metadata };
  return errorOf(refusal, leavesOutcomeUnknown(refusal));
}

/** A part of an answer with its error as one of this client, if it has one. */
export function withError<R>(part: any): R {
  if (part.error === undefined) delete part.error;
  else part.error = partErrorOf(part.error);
  return part;
}

/** The attempts of one call, or of one stream that is begun again. */
export class Attempts {
  private first = performance.now();
  private failures = 0;
  private unknownBefore = false;
  private refusal: Refusal | undefined;

  constructor(
    private readonly core: Core,
    private readonly idempotency: Idempotency,
  ) {}

  /** The stream has brought an item: a later failure is a new one. */
  succeeded(): void {
    this.core.connected = true;
    this.failures = 0;
    this.unknownBefore = false;
    this.refusal = undefined;
  }

  /** How long to wait before the next attempt, in milliseconds. Undefined: there is none. */
  failed(refusal: Refusal): number | undefined {
    if (this.failures === 0 && this.refusal === undefined && this.streams) this.first = performance.now();
    if (this.refusal !== undefined) this.unknownBefore ||= leavesOutcomeUnknown(this.refusal);
    const patience = this.core.patience(refusal);
    this.refusal = refusal;
    this.failures++;
    const again = this.idempotency === Idempotency.IDEMPOTENCY_UNKNOWN ? isRetryableOnce(refusal) : isRetryable(refusal);
    if (!again) return undefined;
    const pause = pauseBefore(this.failures, refusal);
    return performance.now() + pause - this.first > patience ? undefined : pause;
  }

  private get writes(): boolean {
    return this.idempotency !== Idempotency.NO_SIDE_EFFECTS;
  }

  /** true: the time is counted from the first failure since something came. */
  streams = false;

  error(requestId?: string): StrataError {
    const refusal = this.refusal!;
    const settles = !isRetryable(refusal) && (requestId !== undefined || !mayBeOfOwnDoing(refusal));
    return errorOf(refusal, this.writes && (leavesOutcomeUnknown(refusal) || (this.unknownBefore && !settles)), requestId);
  }

  /** The client was closed before the next attempt. */
  closed(requestId?: string): StrataError {
    const unknown = this.unknownBefore || (this.refusal !== undefined && leavesOutcomeUnknown(this.refusal));
    return errorOf({ code: kCancelled, reason: "", message: "the client is closed", metadata: {} }, this.writes && unknown, requestId);
  }

  aborted(signal: AbortSignal, sent: boolean, requestId?: string): AbortError {
    const unknown = this.unknownBefore || sent || (this.refusal !== undefined && leavesOutcomeUnknown(this.refusal));
    const refusal = { code: kCancelled, reason: "", message: "cancelled by the caller", metadata: {} };
    return new AbortError(refusal, this.writes && unknown, requestId, signal.reason);
  }
}

// What grpc-js needs of a method, made once.
interface Route {
  path: string;
  write: (message: Message) => Buffer;
  read: (bytes: Buffer) => Message;
}
const routes = new WeakMap<DescMethod, Route>();

function routeOf(method: DescMethod): Route {
  let route = routes.get(method);
  if (route === undefined) {
    route = {
      path: `/${method.parent.typeName}/${method.name}`,
      write: (message) => {
        const bytes = toBinary(method.input, message);
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      },
      read: (bytes) => fromBinary(method.output, bytes),
    };
    routes.set(method, route);
  }
  return route;
}

export interface CallDetails extends CallOptions {
  requestId?: string | undefined;
  /** How long the call waits at the server, in milliseconds: added to each attempt's deadline. */
  wait?: number | undefined;
}

interface PagesOptions extends CallOptions {
  /** A collection need not exist: the first write makes it. Without one there is nothing to list. */
  emptyWithoutCollection?: boolean;
}

type Stream = grpc.ClientReadableStream<any> | grpc.ClientDuplexStream<any, any>;

export class Core {
  readonly actor: string | undefined;
  readonly timeout: number;
  readonly retryFor: number;
  /** A connection stood once. */
  connected = false;
  private readonly connectTimeout: number;
  private readonly target: string;
  readonly reading: ReadOptions;
  private readonly client: grpc.Client;
  // Not private by TypeScript alone: what prints or copies a client does not see its token.
  readonly #headers: grpc.Metadata;
  private readonly streams = new Set<Stream>();
  private closed = false;

  constructor(options: ClientOptions) {
    const known = ["target", "tls", "token", "actor", "timeout", "retryFor", "connectTimeout", "int64", "ordered", "wholeDoubles"];
    for (const name of Object.keys(options)) if (!known.includes(name)) throw new TypeError(`Client has no option ${name}`);
    if (options.target !== undefined && typeof options.target !== "string") throw new TypeError("target has to be a string");
    if (options.tls !== undefined && typeof options.tls !== "boolean" && (typeof options.tls !== "object" || options.tls === null)) {
      throw new TypeError("tls has to be true, or names of files: { authorities, certificate, key }");
    }
    if (options.token !== undefined && typeof options.token !== "string") throw new TypeError("token has to be a string");
    const target = targetOf(options.target ?? "127.0.0.1:50051");
    if (options.token !== undefined && !options.tls && !target.loopback) {
      throw new TypeError("a token goes without TLS to this machine only: set option tls");
    }
    if (options.token !== undefined && !/^[\x21-\x7e]+$/.test(options.token)) throw new TypeError("the token has other characters than printable ASCII");
    this.actor = options.actor;
    this.timeout = milliseconds("timeout", options.timeout ?? 30_000, 1);
    this.retryFor = milliseconds("retryFor", options.retryFor ?? 30_000, 0);
    this.connectTimeout = milliseconds("connectTimeout", options.connectTimeout ?? 3_000, 1);
    this.target = target.address;
    if (options.int64 !== undefined && options.int64 !== "bigint" && options.int64 !== "long") throw new TypeError('int64 has to be "bigint" or "long"');
    this.reading = { int64: options.int64 ?? "bigint", ordered: options.ordered ?? false, wholeDoubles: options.wholeDoubles ?? "number" };
    this.#headers = new grpc.Metadata();
    if (options.token !== undefined) this.#headers.set("authorization", `Bearer ${options.token}`);
    this.client = new grpc.Client(target.address, credentialsOf(options.tls), {
      // Repetition is this client's own: by reason, and with the request id that makes it safe.
      "grpc.enable_retries": 0,
      "grpc.enable_http_proxy": target.loopback ? 0 : 1,
      // A connection of its own: closing one client does not touch another.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1000,
      "grpc.max_receive_message_length": 16 * 1024 * 1024,
      "grpc.max_send_message_length": -1,
      "grpc.keepalive_time_ms": 60_000,
      "grpc.keepalive_timeout_ms": 20_000,
    });
  }

  /** Calls that are under way are still answered; streams end. */
  close(): void {
    this.closed = true;
    for (const stream of this.streams) stream.cancel();
    this.client.close();
  }

  private get isReady(): boolean {
    return this.client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY;
  }

  /** How long after a call's first attempt the next one may begin. A server that never was there is waited for less than one that restarts. */
  patience(refusal: Refusal): number {
    // What stands beyond a proxy may have said it.
    if (refusal.unsent && this.isReady) refusal.unsent = false;
    if (!refusal.unsent) {
      // What ran out of time may have waited for a connection.
      this.connected ||= refusal.code !== kDeadlineExceeded && refusal.code !== kCancelled;
    } else if (!this.connected) {
      refusal.message = `no connection to ${this.target}: is stratad running there? (${refusal.message})`;
      return Math.min(this.connectTimeout, this.retryFor);
    }
    return this.retryFor;
  }

  // Ends a call that waits for the first connection for too long, which gRPC leaves to the system.
  private limitConnecting(call: grpc.ClientUnaryCall | Stream): void {
    if (this.connected) return;
    const timer = setTimeout(() => {
      if (this.connected || this.isReady) return;
      call.call?.cancelWithStatus(grpc.status.UNAVAILABLE, `${kNoConnection} within ${this.connectTimeout} ms`);
    }, this.connectTimeout);
    call.once("status", () => clearTimeout(timer));
  }

  attempts(idempotency: Idempotency): Attempts {
    return new Attempts(this, idempotency);
  }

  private attempt(route: Route, request: Message, timeout: number, signal: AbortSignal | undefined): Promise<Message> {
    return new Promise((resolve, reject) => {
      let abort: (() => void) | undefined;
      const call = this.client.makeUnaryRequest(
        route.path,
        route.write,
        route.read,
        request,
        this.#headers,
        { deadline: Date.now() + timeout },
        (error, response) => {
          if (abort !== undefined) signal!.removeEventListener("abort", abort);
          if (error) return reject(error);
          this.connected = true;
          resolve(response as Message);
        },
      );
      this.limitConnecting(call);
      if (signal !== undefined) {
        abort = () => call.cancel();
        signal.addEventListener("abort", abort, { once: true });
      }
    });
  }

  /** A unary call, message to message. */
  async call(method: DescMethod, request: Message, details: CallDetails): Promise<any> {
    const { signal, requestId } = details;
    const attempts = new Attempts(this, method.idempotency);
    const route = routeOf(method);
    if (signal?.aborted) throw attempts.aborted(signal, false, requestId);
    for (;;) {
      if (this.closed) throw attempts.closed(requestId);
      try {
        return await this.attempt(route, request, this.timeout + (details.wait ?? 0), signal);
      } catch (error) {
        if (signal?.aborted) throw attempts.aborted(signal, true, requestId);
        if (!isServiceError(error)) throw error;
        const pause = attempts.failed(refusalOf(error));
        if (pause === undefined) throw attempts.error(requestId);
        await this.pause(pause, signal, attempts, requestId);
      }
    }
  }

  async pause(milliseconds: number, signal: AbortSignal | undefined, attempts: Attempts, requestId?: string): Promise<void> {
    try {
      await sleep(milliseconds, undefined, signal === undefined ? {} : { signal });
    } catch {
      throw attempts.aborted(signal!, false, requestId);
    }
  }

  /** A call from plain value to plain value. */
  async plainCall<T>(method: DescMethod, request: object, details: CallDetails): Promise<T> {
    return this.plain<T>(method.output, await this.call(method, messageOf(method.input, request), details));
  }

  plain<T>(desc: DescMessage, message: Message): T {
    return plainMessage<T>(desc, message, this.reading);
  }

  serverStream(method: DescMethod, request: Message): grpc.ClientReadableStream<any> {
    const route = routeOf(method);
    return this.opened(() => this.client.makeServerStreamRequest(route.path, route.write, route.read, request, this.#headers));
  }

  duplex(method: DescMethod): grpc.ClientDuplexStream<any, any> {
    const route = routeOf(method);
    return this.opened(() => this.client.makeBidiStreamRequest(route.path, route.write, route.read, this.#headers));
  }

  // A stream that is not left would keep the connection, and with it the process, after close.
  private opened<S extends Stream>(open: () => S): S {
    if (this.closed) throw this.attempts(Idempotency.NO_SIDE_EFFECTS).closed();
    const stream = open();
    this.limitConnecting(stream);
    this.streams.add(stream);
    stream.on("status", () => this.streams.delete(stream));
    return stream;
  }

  /** Pages of a listing, asked for when they are needed. `items` names the member of the answer that holds them. */
  async *pages<T>(method: DescMethod, request: object, items: string, options: PagesOptions = {}): AsyncGenerator<T, void, undefined> {
    const message = messageOf(method.input, request) as any;
    for (;;) {
      let response;
      try {
        response = await this.call(method, message, { signal: options.signal });
      } catch (error) {
        // A collection that vanishes on the way cuts the listing short.
        if (options.emptyWithoutCollection && message.pageToken === "" && error instanceof classes.COLLECTION_NOT_FOUND) return;
        throw error;
      }
      const page = this.plain<any>(method.output, response);
      yield* page[items];
      if (page.nextPageToken === "") return;
      message.pageToken = page.nextPageToken;
    }
  }
}

function milliseconds(name: string, value: number, least: number): number {
  if (typeof value !== "number" || !(value >= least && value <= 2 ** 31 - 1)) throw new TypeError(`${name} has to be a number of milliseconds`);
  return value;
}

export function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && typeof (error as any).code === "number" && "details" in error;
}
