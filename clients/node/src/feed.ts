// The feed: every change in the order of commits, and subscriptions to it.
import type { DescMethod, Message } from "@bufbuild/protobuf";

import type { Plain } from "./content.js";
import { type CallOptions, type Core, isServiceError } from "./core.js";
import { Duplex, failure } from "./duplex.js";
import { type ConsumeResponse, FeedService, WatchRequestSchema } from "./gen/strata/v1/feed_service_pb.js";
import type {
  CreateSubscriptionRequestInit,
  Delivery as PlainDelivery,
  Document,
  Event,
  GetFeedResponse,
  GetSubscriptionResponse,
  ParkedDocument,
  Snapshot,
  Subscription,
  WatchRequestInit,
} from "./gen/types.js";
import { messageOf } from "./messages.js";

const { method: rpc } = FeedService;

export type WatchOptions = Omit<WatchRequestInit, "encoding"> & CallOptions;

/** An event, or a document of the copy that `snapshot` requested. */
export type WatchItem<T = Plain> = { event: Event<T>; document?: undefined } | { event?: undefined; document: Document<T> };

/**
 * Follows the feed, over broken connections too: nothing comes twice and nothing is missed, as long as no pause is longer than
 * retryFor. Leave the loop, close it, or abort the signal, to end it. To go on after a restart, save `resumePosition`, not
 * `event.position`.
 */
export class Watch<T = any> implements AsyncIterable<WatchItem<T>> {
  /**
   * Save this, not `event.position`, once an item is done with, and begin the next watch with it as `afterPosition`. All items of commits
   * up to this one were given. A commit of several documents has several events with one position: a watch that begins after it misses
   * those that were not given yet. It moves on without events too, where a filter lets none through. Unset: nothing is known yet, or a
   * copy is under way.
   */
  resumePosition: bigint | undefined;
  /** Of a copy: its progress, with which another watch goes on as long as there is no `resumePosition`. */
  snapshot: Snapshot | undefined;
  /** The last commit of the store when the server said so last. */
  lastPosition: bigint | undefined;
  private readonly closing = new AbortController();

  constructor(
    private readonly core: Core,
    private readonly options: WatchOptions,
  ) {}

  /** Whether all commits up to `lastPosition` were given. */
  get caughtUp(): boolean {
    return this.resumePosition !== undefined && this.resumePosition >= this.lastPosition!;
  }

  /** Ends the iteration. */
  close(): void {
    this.closing.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchItem<T>, void, undefined> {
    const { signal, ...rest } = this.options;
    const request = messageOf(WatchRequestSchema, { encoding: "BSON", ...rest }) as any;
    const attempts = this.core.attempts(rpc.watch.idempotency);
    attempts.streams = true;
    let last: Place | undefined;
    const closing = this.closing.signal;
    while (!closing.aborted) {
      if (signal?.aborted) throw attempts.aborted(signal, false);
      const stream = this.core.serverStream(rpc.watch, request);
      const abort = () => stream.cancel();
      signal?.addEventListener("abort", abort, { once: true });
      closing.addEventListener("abort", abort, { once: true });
      let failed: unknown;
      try {
        for await (const message of stream) {
          attempts.succeeded();
          const response = this.core.plain<any>(rpc.watch.output, message);
          // A commit that takes several messages comes again whole after a break: what was given of it is passed over.
          const events = (response.events as Event<T>[]).filter((event) => last === undefined || isBefore(last, event));
          last = events.at(-1) ?? last;
          const items: WatchItem<T>[] = [
            ...events.map((event) => ({ event })),
            ...(response.documents as Document<T>[]).map((document) => ({ document })),
          ];
          yield* items.slice(0, -1);
          // Its last item is about to be given.
          if (message.snapshot !== undefined) {
            this.snapshot = response.snapshot;
            request.start = { case: "snapshot", value: message.snapshot };
          }
          this.lastPosition = response.lastPosition;
          // Zero is a place like others: before the first commit of a store.
          const copying = message.snapshot !== undefined && !message.snapshot.complete;
          if (!copying) {
            this.resumePosition = response.resumePosition;
            request.start = { case: "afterPosition", value: response.resumePosition };
          }
          yield* items.slice(-1);
        }
      } catch (error) {
        if (!isServiceError(error)) throw error;
        failed = error;
      } finally {
        signal?.removeEventListener("abort", abort);
        closing.removeEventListener("abort", abort);
        stream.on("error", () => {});
        stream.cancel();
      }
      if (signal?.aborted) throw attempts.aborted(signal, false);
      if (closing.aborted) return;
      const pause = attempts.failed(failure(failed));
      if (pause === undefined) throw attempts.error();
      await this.core.pause(pause, signal, attempts);
    }
  }
}

/** An event for a consumer. */
export interface Delivery<T = Plain> extends PlainDelivery<T> {
  event: Event<T>;
  partition: number;
}

// A partition that the consumer has: `assignment` tells how it came, `term` what came before a failure from what came after. `failed`: where
// the event stands that failed and has not come again; what comes meanwhile counts for nothing, but for replays.
interface Holding<T> {
  assignment: number;
  term: number;
  failed: Place | undefined;
  waiting: Delivery<T>[];
}

interface Place {
  position: bigint;
  index: number;
}

const isBefore = (a: Place, b: Place): boolean => a.position < b.position || (a.position === b.position && a.index < b.index);

export interface ConsumeOptions extends CallOptions {
  /** Maximum number of delivered, unacknowledged events of each partition. */
  window?: number | undefined;
  includeContent?: boolean | undefined;
  includeBefore?: boolean | undefined;
  includeChanges?: boolean | undefined;
}

/**
 * Takes a subscription's events, over broken connections too. Unacknowledged events come again, so each comes at least once.
 * Leaving the loop gives the partitions back.
 */
export class Consumer<T = any> extends Duplex<ConsumeResponse, Delivery<T>> {
  private readonly open: Message;
  // Of each delivery, what was so when it came: it counts as long as it is so.
  private readonly origin = new WeakMap<object, { assignment: number; term: number }>();
  private readonly partitions = new Map<number, Holding<T>>();
  // The partitions that something waits of, in the order of their turns: none waits for all that there is of another.
  private turns: number[] = [];
  private assignments = 0;

  constructor(core: Core, subscription: string, consumer: string, options: ConsumeOptions) {
    const { signal, ...rest } = options;
    super(core, rpc.consume as DescMethod, signal);
    this.open = messageOf(rpc.consume.input, { open: { encoding: "BSON", ...rest, subscription, consumer } });
  }

  protected opened(): void {
    void this.send(this.open);
  }

  protected lost(): void {
    this.partitions.clear();
    this.turns = [];
  }

  protected heard(response: ConsumeResponse): void {
    const { message } = response;
    if (message.case === "assigned") {
      this.drop(message.value.partition);
      this.partitions.set(message.value.partition, { assignment: ++this.assignments, term: 0, failed: undefined, waiting: [] });
    } else if (message.case === "revoked") {
      this.drop(message.value.partition);
    } else if (message.case === "acknowledged") {
      const holding = this.partitions.get(message.value.partition);
      if (holding?.failed !== undefined && !isBefore(message.value, holding.failed)) holding.failed = undefined;
    } else if (message.case === "deliveries") {
      const { deliveries } = this.core.plain<any>(rpc.consume.output, response).deliveries;
      for (const delivery of deliveries) this.add(Object.assign(delivery, { partition: message.value.partition }));
    }
  }

  private drop(partition: number): void {
    this.partitions.delete(partition);
    this.turns = this.turns.filter((each) => each !== partition);
  }

  // Deliveries after a failed event come again, and an Ack of one before that would end the stream:
  // it is passed over.
  private add(delivery: Delivery<T>): void {
    const holding = this.partitions.get(delivery.partition);
    if (holding === undefined) return;
    if (!delivery.replay && holding.failed !== undefined) {
      if (isBefore(delivery.event, holding.failed) || isBefore(holding.failed, delivery.event)) return;
      holding.failed = undefined;
    }
    this.origin.set(delivery, { assignment: holding.assignment, term: holding.term });
    if (holding.waiting.push(delivery) === 1) this.turns.push(delivery.partition);
  }

  protected take(): Delivery<T> | undefined {
    const partition = this.turns.shift();
    if (partition === undefined) return undefined;
    const { waiting } = this.partitions.get(partition)!;
    const delivery = waiting.shift();
    if (waiting.length > 0) this.turns.push(partition);
    return delivery;
  }

  // Of a partition that went meanwhile there is nothing to say: somebody else gets the event. A replay stands by itself.
  private holdingOf(delivery: Delivery<T>): Holding<T> | undefined {
    const origin = this.origin.get(delivery);
    const holding = this.partitions.get(delivery.partition);
    if (origin === undefined || holding?.assignment !== origin.assignment) return undefined;
    return delivery.replay || holding.term === origin.term ? holding : undefined;
  }

  /**
   * Acknowledges all events of its partition up to this one; of a replay, this event alone. `ack` and `nack` ignore a delivery that no
   * longer counts: another consumer has the partition, or an event before it failed. It comes again.
   */
  async ack(delivery: Delivery<T>): Promise<void> {
    if (this.holdingOf(delivery) === undefined) return;
    const { position, index } = delivery.event;
    await this.send(messageOf(rpc.consume.input, { ack: { partition: delivery.partition, position, index } }));
  }

  /** The event failed and comes again later; with `park`, only after a replay. All before it must have been acknowledged. */
  async nack(delivery: Delivery<T>, reason = "", options: { park?: boolean } = {}): Promise<void> {
    const holding = this.holdingOf(delivery);
    if (holding === undefined) return;
    const { position, index } = delivery.event;
    const nack = messageOf(rpc.consume.input, { nack: { partition: delivery.partition, position, index, reason, park: options.park } });
    if (!delivery.replay) {
      holding.failed = { position, index };
      holding.term++;
      holding.waiting = holding.waiting.filter((each) => each.replay);
      if (holding.waiting.length === 0) this.turns = this.turns.filter((each) => each !== delivery.partition);
    }
    await this.send(nack);
  }

  /** Gives the partitions back, after all acknowledgements are stored. */
  override close(): Promise<void> {
    return super.close();
  }
}

export type CreateSubscriptionOptions = Omit<CreateSubscriptionRequestInit, "name"> & CallOptions;

export class Subscriptions {
  constructor(private readonly core: Core) {}

  async create(name: string, options: CreateSubscriptionOptions = {}): Promise<Subscription> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.createSubscription, { name, ...rest }, { signal })).subscription;
  }

  get(name: string, options: CallOptions = {}): Promise<GetSubscriptionResponse> {
    return this.core.plainCall(rpc.getSubscription, { name }, { signal: options.signal });
  }

  list(options: { prefix?: string; pageSize?: number } & CallOptions = {}): AsyncGenerator<Subscription, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listSubscriptions, rest, "subscriptions", { signal });
  }

  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.core.plainCall(rpc.deleteSubscription, { name }, { signal: options.signal });
  }

  /** Consumes a subscription: `for await (const delivery of consumer) { …; await consumer.ack(delivery); }`. */
  consume<T = any>(subscription: string, consumer: string, options: ConsumeOptions = {}): Consumer<T> {
    return new Consumer<T>(this.core, subscription, consumer, options);
  }

  parked(subscription: string, options: { pageSize?: number } & CallOptions = {}): AsyncGenerator<ParkedDocument, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listParked, { subscription, ...rest }, "documents", { signal });
  }

  /** Answers the number of documents. */
  async replayParked(subscription: string, options: { collection?: string; id?: string } & CallOptions = {}): Promise<number> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.replayParked, { subscription, ...rest }, { signal })).documents;
  }

  /** Answers the number of documents. */
  async discardParked(subscription: string, options: { collection?: string; id?: string } & CallOptions = {}): Promise<number> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.discardParked, { subscription, ...rest }, { signal })).documents;
  }
}

export const feed = (core: Core, options: CallOptions): Promise<GetFeedResponse> =>
  core.plainCall(rpc.getFeed, {}, { signal: options.signal });

