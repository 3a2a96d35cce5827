// Documents and their versions.
import type { DescMethod } from "@bufbuild/protobuf";
import { randomUUID } from "node:crypto";

import { type Plain, encode } from "./content.js";
import { type CallOptions, type Core, pauseBefore } from "./core.js";
import { kNotFound } from "./errors.js";
import { answerOf, messageOf } from "./messages.js";
import { CollectionNotFound, DocumentDeleted, DocumentNotFound, VersionConflict } from "./gen/reasons.js";
import { DocumentService } from "./gen/strata/v1/document_service_pb.js";
import type {
  AuditEntry,
  AuditRequestInit,
  Document,
  FieldChange,
  LeaseTokenInit,
  HistoryRequestInit,
  ListRequestInit,
  OperationInit,
  Version,
} from "./gen/types.js";
import { Watch, type WatchOptions } from "./feed.js";

const { method: rpc } = DocumentService;

/** The actor of a change and the reason for it. */
export interface ChangeOptions {
  /** Unset: the client's. */
  actor?: string | undefined;
  onBehalfOf?: string | undefined;
  reason?: string | undefined;
  labels?: { [name: string]: string } | undefined;
}

export interface WriteOptions extends ChangeOptions, CallOptions {
  /** Unset: a random one. */
  requestId?: string | undefined;
  /** Runs all checks and writes nothing. */
  validateOnly?: boolean | undefined;
  /** No content in the answer. */
  omitContent?: boolean | undefined;
  /** Proof that the writer holds a lease. */
  lease?: LeaseTokenInit | undefined;
}

/** At most one of the first four. */
export interface PreconditionOptions {
  /** The current version, a deletion's included; 0: never written. */
  ifVersion?: bigint | number | undefined;
  ifExists?: boolean | undefined;
  /** A filter that the current content must match. */
  ifMatches?: object | undefined;
  /** A member's path and a number. The member has to be below the number; the server then sets it to the number. */
  newer?: readonly [path: string, value: bigint | number] | undefined;
  maxAttempts?: number | undefined;
}

/** One change of one member; made by `set`, `unset`, `increment`, `append`, `appendMissing` and `removeAll`. */
export type Operation = OperationInit;
export const set = (path: string, value: unknown): Operation => ({ path, set: value as Plain });
export const unset = (path: string): Operation => ({ path, unset: true });
export const increment = (path: string, number: unknown): Operation => ({ path, increment: number as Plain });
export const append = (path: string, values: readonly unknown[]): Operation => ({ path, append: values as Plain[] });
export const appendMissing = (path: string, values: readonly unknown[]): Operation => ({ path, appendMissing: values as Plain[] });
export const removeAll = (path: string, values: readonly unknown[]): Operation => ({ path, removeAll: values as Plain[] });

/** `replace`, or `merge` (RFC 7396) and then `operations`. */
export type Change<T> =
  | { replace: T; merge?: undefined; operations?: undefined }
  | { replace?: undefined; merge?: object; operations?: readonly Operation[] };

/** The result of a write. */
export interface Written<T = Plain> {
  document: Document<T>;
  /** How often the server tried to commit; 0 if nothing had to be written. */
  attempts: number;
  /** false: the result equals the current content, or `modify`'s function gave nothing; nothing was written. */
  changed: boolean;
  /** true: an earlier call with this request id did it. */
  replayed: boolean;
  /** true: `newer` found the document as new or newer; nothing was written. */
  stale: boolean;
  /** Position in the store-wide order of commits. 0: nothing was written, or the engine numbers none. */
  commitPosition: bigint;
}

export interface GetOptions extends CallOptions {
  /** At most one of these three. */
  version?: bigint | number | undefined;
  atTime?: Date | undefined;
  atPosition?: bigint | number | undefined;
  /** JSON Pointers of the members to return. Unset: all. */
  fields?: readonly string[] | undefined;
}

export type HistoryOptions = Omit<HistoryRequestInit, "collection" | "id" | "pageToken" | "encoding"> & CallOptions;
export type ListOptions = Omit<ListRequestInit, "collection" | "pageToken" | "encoding"> & CallOptions;
export type AuditOptions = Omit<AuditRequestInit, "pageToken"> & CallOptions;

export function changeOf(core: Core, options: ChangeOptions): object | undefined {
  const actor = options.actor ?? core.actor;
  const { onBehalfOf, reason, labels } = options;
  if (actor === undefined && onBehalfOf === undefined && reason === undefined && labels === undefined) return undefined;
  return { actor, onBehalfOf, reason, labels };
}

function preconditionOf(options: PreconditionOptions): object | undefined {
  const { ifVersion, ifExists, ifMatches, newer } = options;
  const given = [ifVersion, ifExists, ifMatches, newer].filter((condition) => condition !== undefined);
  if (given.length === 0) return undefined;
  if (given.length > 1) throw new TypeError("at most one of ifVersion, ifExists, ifMatches and newer can be given");
  if (newer !== undefined) return { newer: { path: newer[0], value: newer[1] } };
  return { version: ifVersion, exists: ifExists, filter: ifMatches };
}

/** Takes the options that are flat apart from those that the request has. */
export function writeOf(core: Core, options: WriteOptions & PreconditionOptions, whole = true): object {
  const { actor, onBehalfOf, reason, labels, signal, ifVersion, ifExists, ifMatches, newer, requestId, ...rest } = options;
  void [ifVersion, ifExists, ifMatches, newer, signal];
  return {
    ...rest,
    precondition: preconditionOf(options),
    change: whole ? changeOf(core, options) : changeOf({ actor: undefined } as Core, { actor, onBehalfOf, reason, labels }),
    ...(whole ? { requestId: requestId ?? randomUUID(), encoding: "BSON" } : {}),
  };
}

export function newContentOf(change: Change<any>): object {
  if (typeof change !== "object" || change === null) throw new TypeError("a change needs replace, merge or operations");
  const { replace, merge, operations, ...others } = change;
  for (const name of Object.keys(others)) throw new TypeError(`a change is replace, or merge and operations, not ${name}`);
  if (replace !== undefined) {
    if (merge !== undefined || operations !== undefined) throw new TypeError("replace cannot go together with merge or operations");
    return { replace };
  }
  if (merge === undefined && operations === undefined) throw new TypeError("a change needs replace, merge or operations");
  return { patch: { merge, operations } };
}

// The document is not there. A collection need not exist: the first write makes it.
const isMissing = (error: unknown): error is DocumentNotFound | DocumentDeleted | CollectionNotFound =>
  error instanceof DocumentNotFound || error instanceof DocumentDeleted || error instanceof CollectionNotFound;

// The error for a document that has to be there, where not even its collection is.
function withoutCollection(error: unknown, collection: string, id: string): unknown {
  if (!(error instanceof CollectionNotFound)) return error;
  const refusal = { code: kNotFound, reason: "DOCUMENT_NOT_FOUND", message: "no such document", metadata: { collection, id } };
  return new DocumentNotFound(refusal, error.outcomeUnknown, error.requestId);
}

function differ(content: unknown, read: unknown): boolean {
  try {
    return Buffer.compare(encode(content), encode(read)) !== 0;
  } catch {
    return true; // what was read can be written
  }
}

/** The documents of one collection, which need not exist: the first write makes it. */
export class Collection<T = any> {
  constructor(
    private readonly core: Core,
    readonly name: string,
  ) {}

  private async write(method: keyof typeof rpc, request: any, options: CallOptions): Promise<Written<T>> {
    const details = { requestId: request.requestId, signal: options.signal };
    try {
      const written = await this.core.plainCall<Partial<Written<T>>>(rpc[method], { collection: this.name, ...request }, details);
      written.stale ??= false;
      return written as Written<T>;
    } catch (error) {
      throw method === "create" ? error : withoutCollection(error, this.name, request.id);
    }
  }

  /** DocumentExists if there is one. With id undefined the server makes one. */
  create(id: string | undefined, content: T, options: WriteOptions = {}): Promise<Written<T>> {
    return guarded(() => this.write("create", { id, content, ...writeOf(this.core, options) }, options));
  }

  /** Undefined: it was never written, or is deleted. Asked for at a version, time or position, what is not there is an error. */
  async get(id: string, options: GetOptions = {}): Promise<Document<T> | undefined> {
    const { signal, ...rest } = options;
    const request = { collection: this.name, id, encoding: "BSON", ...rest };
    try {
      const answer = await this.core.plainCall<{ document: Document<T> }>(rpc.get, request, { signal });
      return answer.document;
    } catch (error) {
      const past = options.version !== undefined || options.atTime !== undefined || options.atPosition !== undefined;
      if (isMissing(error) && !past) return undefined;
      throw error;
    }
  }

  /** At most 1000 ids, none twice; requests documents again that did not fit into one answer. */
  async batchGet(
    ids: readonly string[],
    options: { fields?: readonly string[] } & CallOptions = {},
  ): Promise<{ documents: Document<T>[]; missingIds: string[] }> {
    const { signal, ...rest } = options;
    const documents: Document<T>[] = [];
    const missing = new Set<string>();
    for (let open = ids; ; ) {
      const request = { collection: this.name, ids: open, encoding: "BSON", ...rest };
      const answer = await this.core.plainCall<any>(rpc.batchGet, request, { signal }).catch((error) => {
        if (!(error instanceof CollectionNotFound)) throw error;
        return { documents: [], missingIds: open, remainingIds: [] };
      });
      documents.push(...answer.documents);
      for (const id of answer.missingIds) missing.add(id);
      if (answer.remainingIds.length === 0) return { documents, missingIds: ids.filter((id) => missing.has(id)) };
      open = answer.remainingIds;
    }
  }

  /** `update("moby", { operations: [increment("/stock", -1)] }, { reason: "sold" })`. */
  update(
    id: string,
    change: Change<T>,
    options: WriteOptions & PreconditionOptions & { allowMissing?: boolean; keepUnchanged?: boolean } = {},
  ): Promise<Written<T>> {
    return guarded(() => this.write("update", { id, ...newContentOf(change), ...writeOf(this.core, options) }, options));
  }

  /**
   * Reads, calls `fn` with the content (undefined: missing or deleted), and writes its answer. If another writer was faster, it begins
   * again, so that `fn` may be called several times. undefined writes nothing; then `changed` is false and `document` is the one that
   * was read. A TypeError if the content was changed in place and nothing is returned.
   */
  async modify(
    id: string,
    fn: (content: T | undefined) => T | undefined | Promise<T | undefined>,
    options: ChangeOptions & CallOptions & { lease?: LeaseTokenInit } = {},
  ): Promise<Written<T>> {
    const known = ["actor", "onBehalfOf", "reason", "labels", "lease", "signal"];
    for (const name of Object.keys(options)) if (!known.includes(name)) throw new TypeError(`modify has no option ${name}`);
    if (typeof fn !== "function") throw new TypeError("modify needs a function of the content");
    const attempts = this.core.attempts(rpc.update.idempotency);
    const started = performance.now();
    for (let conflicts = 0; ; conflicts++) {
      const { read, version } = await this.current(id, options.signal);
      const document = read();
      const content = await fn(document.content);
      if (content === undefined) {
        if (document.content !== undefined && differ(document.content, read().content)) {
          throw new TypeError(
            `the function of modify changed the content of "${id}" in place and returned nothing: ` +
              "it has to return the content that is to be written, or leave what it was given as it is",
          );
        }
        return answerOf({ document, attempts: 0, changed: false, replayed: false, stale: false, commitPosition: 0n });
      }
      try {
        return await this.update(id, { replace: content }, { ...options, ifVersion: version, allowMissing: true });
      } catch (error) {
        if (!(error instanceof VersionConflict)) throw error;
        const pause = conflicts === 0 ? 0 : Math.min(100, pauseBefore(conflicts));
        if (performance.now() + pause - started > this.core.retryFor) throw error;
        if (pause > 0) await this.core.pause(pause, options.signal, attempts);
      }
    }
  }

  // What modify builds on: the version is a deletion's where the document is deleted, and 0 where nothing was ever written.
  private async current(id: string, signal: AbortSignal | undefined): Promise<{ read: () => Document<T>; version: bigint }> {
    try {
      const request = messageOf(rpc.get.input, { collection: this.name, id, encoding: "BSON" });
      const answer = await this.core.call(rpc.get, request, { signal });
      return { read: () => this.core.plain<{ document: Document<T> }>(rpc.get.output, answer).document, version: answer.document.version };
    } catch (error) {
      if (!isMissing(error)) throw error;
      const version = BigInt(error.metadata.version ?? 0);
      const document: Document<T> = answerOf({
        collection: this.name,
        id,
        version,
        content: undefined,
        createTime: undefined,
        updateTime: undefined,
        pendingTransactionId: "",
      });
      return { read: () => document, version };
    }
  }

  /** Writes a deletion as a new version. */
  delete(id: string, options: Omit<WriteOptions, "omitContent"> & PreconditionOptions = {}): Promise<Written<T>> {
    return guarded(() => {
      const { encoding: _, ...request } = writeOf(this.core, options) as any;
      return this.write("delete", { id, ...request }, options);
    });
  }

  /** Makes the content of `version` the newest. */
  restore(
    id: string,
    version: bigint | number,
    options: WriteOptions & Omit<PreconditionOptions, "newer"> & { keepUnchanged?: boolean } = {},
  ): Promise<Written<T>> {
    return guarded(() => this.write("restore", { id, version, ...writeOf(this.core, options) }, options));
  }

  history(id: string, options: HistoryOptions = {}): AsyncGenerator<Version<T>, void, undefined> {
    const { signal, ...rest } = options;
    return this.pagesOf(rpc.history, { id, encoding: "BSON", ...rest }, "versions", { signal });
  }

  // Of one document, which has to be there.
  private async *pagesOf<P>(method: DescMethod, request: { id: string; [option: string]: unknown }, items: string, options: CallOptions): AsyncGenerator<P, void, undefined> {
    try {
      yield* this.core.pages<P>(method, { collection: this.name, ...request }, items, options);
    } catch (error) {
      throw withoutCollection(error, this.name, request.id);
    }
  }

  /** From one version to another; without toVersion to the current one. */
  diff(
    id: string,
    fromVersion: bigint | number,
    toVersion?: bigint | number,
    options: { pageSize?: number } & CallOptions = {},
  ): AsyncGenerator<FieldChange, void, undefined> {
    const { signal, ...rest } = options;
    return this.pagesOf(rpc.diff, { id, fromVersion, toVersion, ...rest }, "changes", { signal });
  }

  audit(options: Omit<AuditOptions, "collection"> = {}): AsyncGenerator<AuditEntry<T>, void, undefined> {
    return audit(this.core, { ...options, collection: this.name });
  }

  list(options: ListOptions = {}): AsyncGenerator<Document<T>, void, undefined> {
    const { signal, ...rest } = options;
    const request = { collection: this.name, encoding: "BSON", ...rest };
    return this.core.pages(rpc.list, request, "documents", { signal, emptyWithoutCollection: true });
  }

  watch(options: Omit<WatchOptions, "collections"> = {}): Watch<T> {
    return new Watch<T>(this.core, { ...options, collections: [this.name] });
  }
}

export function audit<T>(core: Core, options: AuditOptions): AsyncGenerator<AuditEntry<T>, void, undefined> {
  const { signal, ...rest } = options;
  return core.pages(rpc.audit, rest, "entries", { signal });
}

// What is refused before it is sent is a rejection like any other, never a throw.
export async function guarded<R>(call: () => Promise<R>): Promise<R> {
  return call();
}
