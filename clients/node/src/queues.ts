// Queues: messages that are pushed, handed out under a reservation, and acknowledged, rolled back or moved.
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { randomUUID } from "node:crypto";

import { type CallOptions, type Core, type Part, partErrorOf, pauseBefore, withError } from "./core.js";
import { guarded } from "./documents.js";
import { Duplex } from "./duplex.js";
import { type StrataError, isRetryablePart, kFailedPrecondition, kUnavailable } from "./errors.js";
import { QueueService, type ReceiveResponse } from "./gen/strata/v1/queue_service_pb.js";
import type {
  CreateScheduleRequestInit,
  ListMessagesRequestInit,
  MoveRequestInit,
  PurgeMessagesRequestInit,
  PushedMessageInit,
  Queue,
  QueueMessage,
  QueueSettingsInit,
  ReplayRequestInit,
  Schedule,
} from "./gen/types.js";
import { messageOf } from "./messages.js";

const { method: rpc } = QueueService;

/** The result for one token. */
export interface TokenResult {
  /** true: an earlier call did it. */
  replayed: boolean;
  /** Why it was not done: RESERVATION_LOST, MESSAGE_NOT_FOUND, …. */
  error?: StrataError;
}

/** The result for one message of a push. */
export interface PushResult extends TokenResult {
  /** Empty: see `error`. */
  messageId: string;
}

export interface RollbackOptions extends CallOptions {
  /** When they are to be handed out again, in milliseconds from now. Not with `dead`. */
  delay?: number | undefined;
  /** The try does not count. Not with `dead`. */
  notCounted?: boolean | undefined;
  /** They are never handed out again. */
  dead?: boolean | undefined;
  reason?: string | undefined;
}

export interface ReceiveOptions extends CallOptions {
  /** Maximum number of messages out. Default: 100. */
  credits?: number | undefined;
  /** How long they are reserved, in milliseconds. */
  timeout?: number | undefined;
}

const withErrors = <R>(results: any[]): R[] => results.map((result) => withError<R>(result));

const listOf = (tokens: string | readonly string[]): readonly string[] => (typeof tokens === "string" ? [tokens] : tokens);

/** The writer's option objects of a queue name what the settings are. */
const maskOf = (settings: object): string[] =>
  Object.keys(settings).map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

// Something that was asked of a message, until it is answered.
interface Question {
  token: string;
  request: Message;
  acknowledges: boolean;
  begun: number;
  said: boolean;
  repeated: boolean;
  failures: number;
  resolve: (result: TokenResult) => void;
  reject: (error: unknown) => void;
}

/**
 * Messages as they come, over broken connections too. A message that is neither acknowledged nor rolled back in time comes again.
 * Leaving the loop gives messages that are still out back at once.
 *
 * Requests about a message are repeated over a new connection and, within retryFor, after a refusal for a repeatable reason. Requests
 * about one message are sent one after the other. The promises may be dropped.
 */
export class Receiver<T = any> extends Duplex<ReceiveResponse, QueueMessage<T>> {
  private readonly open: Message;
  private readonly buffer: QueueMessage<T>[] = [];
  // In the order in which they were asked; and by token. An answer names the token but not what was asked of it, and those to different
  // questions come in any order: so of each token one thing is asked after the other. No row is empty.
  private readonly questions = new Set<Question>();
  private readonly rows = new Map<string, Question[]>();
  private readonly again = new Map<Question, NodeJS.Timeout>();
  private unsaid = 0;

  constructor(core: Core, queue: string, options: ReceiveOptions) {
    const { signal, credits = 100, ...rest } = options;
    super(core, rpc.receive as DescMethod, signal);
    this.open = messageOf(rpc.receive.input, { open: { encoding: "BSON", ...rest, credits, queue } });
  }

  protected opened(): void {
    void this.send(this.open);
    this.waitForNone();
    this.unsaid = this.questions.size;
    for (const question of this.questions) {
      question.repeated ||= question.said;
      question.said = false;
      if (this.rows.get(question.token)![0] === question) this.say(question);
    }
  }

  // They come again, with tokens that count.
  protected lost(): void {
    this.buffer.length = 0;
  }

  protected heard(response: ReceiveResponse): void {
    if (response.message.case === "messages") {
      this.buffer.push(...this.core.plain<any>(rpc.receive.output, response).messages.messages);
    } else if (response.message.case === "results") {
      const { tokens, results } = this.core.plain<any>(rpc.receive.output, response).results;
      tokens.forEach((token: string, i: number) => results[i] !== undefined && this.settle(token, results[i]));
    }
  }

  protected take(): QueueMessage<T> | undefined {
    return this.buffer.shift();
  }

  protected override owes(): boolean {
    return this.questions.size > 0;
  }

  protected override mayLeave(): boolean {
    return this.unsaid === 0;
  }

  protected override ended(): void {
    this.waitForNone();
    const refusal = { code: kUnavailable, reason: "", message: "the stream ended before the answer", metadata: {} };
    for (const { reject } of this.questions) reject(partErrorOf(refusal));
    this.questions.clear();
    this.rows.clear();
  }

  private waitForNone(): void {
    for (const timer of this.again.values()) clearTimeout(timer);
    this.again.clear();
  }

  private say(question: Question): Promise<void> {
    question.said = true;
    this.unsaid--;
    return this.send(question.request);
  }

  private settle(token: string, outcome: { replayed: boolean; error?: Part }): void {
    const row = this.rows.get(token);
    const question = row?.[0];
    if (row === undefined || question === undefined || !question.said) return;
    if (outcome.error !== undefined && this.isToBeSaidAgain(question, outcome.error)) return;
    this.questions.delete(question);
    row.shift();
    if (row.length === 0) this.rows.delete(token);
    else void this.say(row[0]!);
    // It was finished by the first time of asking, and is kept no longer.
    const finished = question.repeated && question.acknowledges && outcome.error?.reason === "MESSAGE_NOT_FOUND";
    question.resolve(finished ? { replayed: true } : withErrors<TokenResult>([outcome])[0]!);
  }

  // Over the same stream, as its message is reserved with that.
  private isToBeSaidAgain(question: Question, refusal: Part): boolean {
    if (!isRetryablePart(refusal)) return false;
    const pause = pauseBefore(question.failures + 1);
    if (performance.now() + pause - question.begun > this.core.retryFor) return false;
    question.failures++;
    question.repeated = true;
    question.said = false;
    this.unsaid++;
    const timer = setTimeout(() => {
      this.again.delete(question);
      void this.say(question);
      this.leave();
    }, pause);
    this.again.set(question, timer);
    return true;
  }

  private ask(request: object, { token }: QueueMessage<T>): Promise<TokenResult> {
    if (!this.isOpen) {
      const refusal = { code: kFailedPrecondition, reason: "", message: "the receiver is closed, or was not iterated yet", metadata: {} };
      return Promise.reject(partErrorOf(refusal));
    }
    const message = messageOf(rpc.receive.input, request);
    const asked = new Promise<TokenResult>((resolve, reject) => {
      const acknowledges = "acknowledge" in request;
      const begun = performance.now();
      const question = { token, request: message, acknowledges, begun, said: false, repeated: false, failures: 0, resolve, reject };
      this.questions.add(question);
      this.unsaid++;
      const row = this.rows.get(token);
      if (row !== undefined) {
        row.push(question);
        return;
      }
      this.rows.set(token, [question]);
      void this.say(question);
    });
    // Whoever does not ask does not end the process.
    asked.catch(() => {});
    return asked;
  }

  /** Finishes the message. After a repetition, "there is no such message" counts as done. */
  acknowledge(message: QueueMessage<T>): Promise<TokenResult> {
    return this.ask({ acknowledge: { tokens: [message.token] } }, message);
  }

  rollback(message: QueueMessage<T>, options: Omit<RollbackOptions, "signal"> = {}): Promise<TokenResult> {
    return this.ask({ rollback: { tokens: [message.token], ...options } }, message);
  }

  extend(message: QueueMessage<T>, options: { timeout?: number } = {}): Promise<TokenResult> {
    return this.ask({ extend: { tokens: [message.token], ...options } }, message);
  }

  /** Messages that are still out go to other consumers at once, and the attempt is not counted. */
  override close(): Promise<void> {
    return super.close();
  }
}

export class Schedules<T = any> {
  constructor(private readonly core: Core) {}

  /** Either `cron` or `every` (milliseconds). One of the same name is replaced. */
  async create(
    queue: string,
    name: string,
    options: Omit<CreateScheduleRequestInit<T>, "queue" | "name" | "encoding"> & CallOptions,
  ): Promise<Schedule<T>> {
    const { signal, ...rest } = options;
    const request = { queue, name, encoding: "BSON", ...rest };
    return (await this.core.plainCall<any>(rpc.createSchedule, request, { signal })).schedule;
  }

  list(queue: string, options: { pageSize?: number } & CallOptions = {}): AsyncGenerator<Schedule<T>, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listSchedules, { queue, encoding: "BSON", ...rest }, "schedules", { signal });
  }

  async delete(queue: string, name: string, options: CallOptions = {}): Promise<void> {
    await this.core.plainCall(rpc.deleteSchedule, { queue, name }, { signal: options.signal });
  }
}

export class Queues<T = any> {
  constructor(private readonly core: Core) {}

  get schedules(): Schedules<T> {
    return new Schedules<T>(this.core);
  }

  async create(name: string, settings: QueueSettingsInit = {}, options: CallOptions = {}): Promise<Queue> {
    return (await this.core.plainCall<any>(rpc.createQueue, { name, settings }, { signal: options.signal })).queue;
  }

  async get(name: string, options: CallOptions = {}): Promise<Queue> {
    return (await this.core.plainCall<any>(rpc.getQueue, { name }, { signal: options.signal })).queue;
  }

  list(options: { pageSize?: number } & CallOptions = {}): AsyncGenerator<Queue, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listQueues, rest, "queues", { signal });
  }

  /** Changes the settings that are named; one that is named and undefined returns to its default. */
  async update(name: string, settings: QueueSettingsInit, options: CallOptions = {}): Promise<Queue> {
    const request = { name, settings, updateMask: maskOf(settings) };
    return (await this.core.plainCall<any>(rpc.updateQueue, request, { signal: options.signal })).queue;
  }

  async delete(name: string, options: { force?: boolean } & CallOptions = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.core.plainCall(rpc.deleteQueue, { name, ...rest }, { signal });
  }

  /** One message, or up to 100; each without a request id gets a random one. If a single message is refused, the call ends with its error. */
  push(queue: string, message: PushedMessageInit<T>, options?: CallOptions): Promise<PushResult>;
  push(queue: string, messages: readonly PushedMessageInit<T>[], options?: CallOptions): Promise<PushResult[]>;
  push(
    queue: string,
    messages: PushedMessageInit<T> | readonly PushedMessageInit<T>[],
    options: CallOptions = {},
  ): Promise<PushResult | PushResult[]> {
    return guarded(async () => {
      const list = (Array.isArray(messages) ? messages : [messages]).map((message) => ({
        ...message,
        requestId: message.requestId ?? randomUUID(),
      }));
      const requestId = list.length === 1 ? list[0].requestId : undefined;
      const details = { signal: options.signal, requestId };
      const answer = await this.core.plainCall<any>(rpc.push, { queue, messages: list }, details);
      const results = withErrors<PushResult>(answer.results);
      if (Array.isArray(messages)) return results;
      const [result] = results;
      if (result!.error !== undefined) throw result!.error;
      return result!;
    });
  }

  /** At most once: if the answer is lost, its messages are lost, and the call is not repeated. `wait` in milliseconds. */
  async pop(queue: string, options: { count?: number; wait?: number } & CallOptions = {}): Promise<QueueMessage<T>[]> {
    const { signal, ...rest } = options;
    const details = { signal, wait: options.wait };
    return (await this.core.plainCall<any>(rpc.pop, { queue, encoding: "BSON", ...rest }, details)).messages;
  }

  /** At least once: a message that is neither acknowledged nor rolled back in time is handed out again. `timeout`, `wait` in milliseconds. */
  async reserve(
    queue: string,
    options: { count?: number; timeout?: number; wait?: number } & CallOptions = {},
  ): Promise<QueueMessage<T>[]> {
    const { signal, ...rest } = options;
    const details = { signal, wait: options.wait };
    return (await this.core.plainCall<any>(rpc.reserve, { queue, encoding: "BSON", ...rest }, details)).messages;
  }

  acknowledge(tokens: string | readonly string[], options: CallOptions = {}): Promise<TokenResult[]> {
    return this.tokens(rpc.acknowledge, tokens, options);
  }

  rollback(tokens: string | readonly string[], options: RollbackOptions = {}): Promise<TokenResult[]> {
    return this.tokens(rpc.rollback, tokens, options);
  }

  extend(tokens: string | readonly string[], options: { timeout?: number } & CallOptions = {}): Promise<TokenResult[]> {
    return this.tokens(rpc.extend, tokens, options);
  }

  private async tokens(method: DescMethod, tokens: string | readonly string[], options: CallOptions): Promise<TokenResult[]> {
    const { signal, ...rest } = options;
    const answer = await this.core.plainCall<any>(method, { tokens: listOf(tokens), ...rest }, { signal });
    return withErrors<TokenResult>(answer.results);
  }

  /** Moves a message to another queue, in one commit. */
  async move(
    token: string,
    queue: string,
    options: Omit<MoveRequestInit<T>, "token" | "queue" | "encoding"> & CallOptions = {},
  ): Promise<QueueMessage<T>> {
    const { signal, ...rest } = options;
    const request = { token, queue, encoding: "BSON", ...rest };
    return (await this.core.plainCall<any>(rpc.move, request, { signal })).message;
  }

  /** `for await (const message of receiver) { …; await receiver.acknowledge(message); }`. */
  receive(queue: string, options: ReceiveOptions = {}): Receiver<T> {
    return new Receiver<T>(this.core, queue, options);
  }

  async message(queue: string, messageId: string, options: CallOptions = {}): Promise<QueueMessage<T>> {
    const request = { queue, messageId, encoding: "BSON" };
    return (await this.core.plainCall<any>(rpc.getMessage, request, { signal: options.signal })).message;
  }

  messages(
    queue: string,
    options: Omit<ListMessagesRequestInit, "queue" | "pageToken" | "encoding"> & CallOptions = {},
  ): AsyncGenerator<QueueMessage<T>, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listMessages, { queue, encoding: "BSON", ...rest }, "messages", { signal });
  }

  /** Makes FINISHED or DEAD messages READY again: messageIds, or states. `more`: call again. */
  async replay(
    queue: string,
    options: Omit<ReplayRequestInit, "queue"> & CallOptions,
  ): Promise<{ messages: bigint; more: boolean }> {
    const { signal, ...rest } = options;
    return this.core.plainCall(rpc.replay, { queue, ...rest }, { signal });
  }

  /** Removes messages permanently: messageIds, or states. `more`: call again. */
  async purge(
    queue: string,
    options: Omit<PurgeMessagesRequestInit, "queue"> & CallOptions,
  ): Promise<{ messages: bigint; more: boolean }> {
    const { signal, ...rest } = options;
    return this.core.plainCall(rpc.purgeMessages, { queue, ...rest }, { signal });
  }
}
