// Collections: sets of documents that share one strategy.
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { randomUUID } from "node:crypto";

import { type CallOptions, type Core, isServiceError } from "./core.js";
import { guarded } from "./documents.js";
import { failure } from "./duplex.js";
import { CollectionService } from "./gen/strata/v1/collection_service_pb.js";
import type {
  Collection,
  CreateCollectionRequestInit,
  DeleteCollectionRequestInit,
  LedgerHead,
  VerifyRequestInit,
  VerifyResponse,
} from "./gen/types.js";
import { messageOf } from "./messages.js";

const { method: rpc } = CollectionService;

export type VerifyOptions = Omit<VerifyRequestInit, "collection"> & CallOptions;

export class Collections {
  constructor(private readonly core: Core) {}

  async create(name: string, options: Omit<CreateCollectionRequestInit, "name"> & CallOptions = {}): Promise<Collection> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.createCollection, { name, ...rest }, { signal })).collection;
  }

  /** With estimated statistics. */
  async get(name: string, options: CallOptions = {}): Promise<Collection> {
    return (await this.core.plainCall<any>(rpc.getCollection, { name }, { signal: options.signal })).collection;
  }

  list(options: { pageSize?: number } & CallOptions = {}): AsyncGenerator<Collection, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listCollections, rest, "collections", { signal });
  }

  /** With all its documents and versions. `replayed`: it was deleted before under this request id. */
  delete(name: string, options: Omit<DeleteCollectionRequestInit, "name"> & CallOptions = {}): Promise<{ replayed: boolean }> {
    const { signal, requestId = randomUUID(), ...rest } = options;
    const request = { name, requestId, ...rest };
    return guarded(() => this.core.plainCall(rpc.deleteCollection, request, { requestId, signal }));
  }

  /** The end of the ledger. An auditor keeps it for `verify`'s expectHead. */
  async ledgerHead(options: CallOptions = {}): Promise<LedgerHead> {
    return (await this.core.plainCall<any>(rpc.getLedgerHead, {}, { signal: options.signal })).head;
  }

  /**
   * Findings and progress. Ends with ChainBroken if something is neither recoverable nor repaired. Resumes by itself when the stream
   * breaks. Without a collection: the ledger alone, compared with expectHead.
   */
  async *verify(collection: string | undefined, options: VerifyOptions = {}): AsyncGenerator<VerifyResponse, void, undefined> {
    const { signal, ...rest } = options;
    const request = messageOf(rpc.verify.input, { collection, ...rest }) as any;
    const attempts = this.core.attempts(options.repair === true ? Idempotency.IDEMPOTENT : rpc.verify.idempotency);
    attempts.streams = true;
    for (;;) {
      if (signal?.aborted) throw attempts.aborted(signal, false);
      const stream = this.core.serverStream(rpc.verify, request);
      const abort = () => stream.cancel();
      signal?.addEventListener("abort", abort, { once: true });
      let failed: unknown;
      try {
        for await (const message of stream) {
          attempts.succeeded();
          const response = this.core.plain<VerifyResponse>(rpc.verify.output, message);
          if (response.resumeToken !== "") request.resumeToken = response.resumeToken;
          yield response;
        }
        return;
      } catch (error) {
        if (!isServiceError(error)) throw error;
        failed = error;
      } finally {
        signal?.removeEventListener("abort", abort);
        stream.on("error", () => {});
        stream.cancel();
      }
      if (signal?.aborted) throw attempts.aborted(signal, false);
      const pause = attempts.failed(failure(failed));
      if (pause === undefined) throw attempts.error();
      await this.core.pause(pause, signal, attempts);
    }
  }
}
