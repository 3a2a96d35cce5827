// Transactions: changes of several documents that take effect together or not at all.
import { randomUUID } from "node:crypto";

import type { Plain } from "./content.js";
import { type CallOptions, type Core } from "./core.js";
import {
  type Change,
  type ChangeOptions,
  type PreconditionOptions,
  type WriteOptions,
  changeOf,
  guarded,
  newContentOf,
  writeOf,
} from "./documents.js";
import type { EnrollOptions } from "./enrollments.js";
import { TransactionService } from "./gen/strata/v1/transaction_service_pb.js";
import type {
  CommitResponse,
  LeaseTokenInit,
  PushedMessageInit,
  ReadResponse,
  Transaction as TransactionInfo,
  TransactionMode,
  TransactionStatus,
  Participant,
} from "./gen/types.js";

const { method: rpc } = TransactionService;

type Part = ChangeOptions & Omit<PreconditionOptions, "maxAttempts"> & { lease?: LeaseTokenInit };

// The options of one write. What belongs to the whole transaction is refused in it, which would drop it.
function partOf(core: Core, options: WriteOptions & PreconditionOptions): object {
  for (const name of ["requestId", "validateOnly", "maxAttempts", "omitContent"] as const) {
    if (options[name] !== undefined) throw new TypeError(`${name} belongs to the whole transaction: give it to commit`);
  }
  return writeOf(core, options, false);
}

/**
 * Put together, then committed:
 * `await client.transaction().update("accounts", "a", …).update("accounts", "b", …).commit({ reason: "rent" })`.
 */
export class Transaction {
  private readonly writes: object[] = [];
  private readonly reads: object[] = [];
  private readonly tokens: string[] = [];
  private readonly pushes: object[] = [];

  constructor(private readonly core: Core) {}

  create(collection: string, id: string, content: object, options: ChangeOptions & { lease?: LeaseTokenInit } = {}): this {
    return this.write("create", { collection, id, content, ...partOf(this.core, options) });
  }

  update(
    collection: string,
    id: string,
    change: Change<any>,
    options: Part & { allowMissing?: boolean; keepUnchanged?: boolean } = {},
  ): this {
    return this.write("update", { collection, id, ...newContentOf(change), ...partOf(this.core, options) });
  }

  delete(collection: string, id: string, options: Part = {}): this {
    return this.write("delete", { collection, id, ...partOf(this.core, options) });
  }

  restore(collection: string, id: string, version: bigint | number, options: Part & { keepUnchanged?: boolean } = {}): this {
    return this.write("restore", { collection, id, version, ...partOf(this.core, options) });
  }

  enroll(studentId: string, className: string, sequenceNumber: bigint | number, options: Omit<EnrollOptions, "signal"> = {}): this {
    return this.write("enroll", { studentId, className, sequenceNumber, ...partOf(this.core, options) });
  }

  unenroll(studentId: string, className: string, sequenceNumber: bigint | number, options: Omit<EnrollOptions, "signal"> = {}): this {
    return this.write("unenroll", { studentId, className, sequenceNumber, ...partOf(this.core, options) });
  }

  private write(kind: string, part: any): this {
    if (part.precondition === undefined) delete part.precondition;
    this.writes.push({ [kind]: part });
    return this;
  }

  /** The document must still be at this version when the transaction takes effect; 0: never written. */
  check(collection: string, id: string, version: bigint | number): this {
    this.reads.push({ collection, id, version });
    return this;
  }

  /** The message is finished in the same commit. */
  acknowledge(token: string): this {
    this.tokens.push(token);
    return this;
  }

  push(queue: string, message: PushedMessageInit): this {
    this.pushes.push({ queue, message });
    return this;
  }

  /** Commits all of it or none. */
  commit<T = Plain>(options: WriteOptions & { mode?: TransactionMode; maxAttempts?: number } = {}): Promise<CommitResponse<T>> {
    const { actor, onBehalfOf, reason, labels, signal, requestId = randomUUID(), ...rest } = options;
    void [actor, onBehalfOf, reason, labels];
    const request = {
      writes: this.writes,
      reads: this.reads,
      acknowledge: this.tokens,
      pushes: this.pushes,
      encoding: "BSON",
      change: changeOf(this.core, options),
      requestId,
      ...rest,
    };
    return guarded(() => this.core.plainCall(rpc.commit, request, { requestId, signal }));
  }
}

export class Transactions {
  constructor(private readonly core: Core) {}

  /** Documents of any collections as of one moment; `missing` as `check` takes them. */
  async read<T = any>(
    documents: readonly { collection: string; id: string }[],
    options: CallOptions = {},
  ): Promise<ReadResponse<T>> {
    return this.core.plainCall(rpc.read, { documents, encoding: "BSON" }, { signal: options.signal });
  }

  async get(id: string, options: CallOptions = {}): Promise<TransactionInfo> {
    return (await this.core.plainCall<any>(rpc.getTransaction, { id }, { signal: options.signal })).transaction;
  }

  list(options: { status?: TransactionStatus; pageSize?: number } & CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listTransactions, rest, "transactions", { signal });
  }

  cancel(id: string, options: ChangeOptions & CallOptions = {}): Promise<TransactionInfo> {
    const request = { id, change: changeOf(this.core, options) };
    return guarded(
      async () =>
        (await this.core.plainCall<any>(rpc.cancelTransaction, request, { signal: options.signal })).transaction,
    );
  }

  async resume(id: string, options: CallOptions = {}): Promise<TransactionInfo> {
    return (await this.core.plainCall<any>(rpc.resumeTransaction, { id }, { signal: options.signal })).transaction;
  }
}

export type { Participant, TransactionInfo };
