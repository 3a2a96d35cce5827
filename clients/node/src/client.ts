// A connection to one server, and all that hangs on it.
import { Collections } from "./collections.js";
import type { Plain } from "./content.js";
import { type CallOptions, type ClientOptions, Core } from "./core.js";
import { type AuditOptions, Collection, audit } from "./documents.js";
import { Enrollments } from "./enrollments.js";
import { Subscriptions, Watch, type WatchOptions, feed } from "./feed.js";
import { ServerService } from "./gen/strata/v1/server_service_pb.js";
import type { AuditEntry, GetFeedResponse, GetServerInfoResponse } from "./gen/types.js";
import { Leases } from "./leases.js";
import { Queues } from "./queues.js";
import { Transaction, Transactions } from "./transactions.js";

export class Client {
  private readonly core: Core;
  readonly collections: Collections;
  readonly enrollments: Enrollments;
  readonly subscriptions: Subscriptions;
  readonly leases: Leases;
  readonly queues: Queues;
  readonly transactions: Transactions;

  /** Does not wait until the server is reached. Throws a TypeError for options that contradict each other. */
  constructor(options: ClientOptions | string = {}) {
    this.core = new Core(typeof options === "string" ? { target: options } : options);
    this.collections = new Collections(this.core);
    this.enrollments = new Enrollments(this.core);
    this.subscriptions = new Subscriptions(this.core);
    this.leases = new Leases(this.core);
    this.queues = new Queues(this.core);
    this.transactions = new Transactions(this.core);
  }

  /** The documents of one collection, as T's. */
  collection<T = any>(name: string): Collection<T> {
    return new Collection<T>(this.core, name);
  }

  transaction(): Transaction {
    return new Transaction(this.core);
  }

  watch<T = any>(options: WatchOptions = {}): Watch<T> {
    return new Watch<T>(this.core, options);
  }

  feed(options: CallOptions = {}): Promise<GetFeedResponse> {
    return feed(this.core, options);
  }

  /** Of every collection, unless the options name one. */
  audit<T = Plain>(options: AuditOptions = {}): AsyncGenerator<AuditEntry<T>, void, undefined> {
    return audit(this.core, options);
  }

  async serverInfo(options: CallOptions = {}): Promise<GetServerInfoResponse> {
    return this.core.plainCall(ServerService.method.getServerInfo, {}, { signal: options.signal });
  }

  /** Calls that are under way are still answered; streams end with a StrataError of code CANCELLED. */
  close(): void {
    this.core.close();
  }
}

// Where the language has `using`, a client can be declared with it.
if (Symbol.dispose) {
  Object.defineProperty(Client.prototype, Symbol.dispose, { value: Client.prototype.close });
}
