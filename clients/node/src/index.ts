// Strata's client for Node.
export { Client } from "./client.js";
export type { CallOptions, ClientOptions, Tls } from "./core.js";
export { type Plain, type ReadOptions, WideDate } from "./content.js";
export { Time } from "./time.js";
export { AbortError, InvalidValue, StrataError } from "./errors.js";
export * from "./gen/reasons.js";
export type * from "./gen/types.js";
export {
  Collection, append, appendMissing, increment, removeAll, set, unset,
  type AuditOptions, type Change, type ChangeOptions, type GetOptions, type HistoryOptions, type ListOptions, type Operation,
  type PreconditionOptions, type WriteOptions, type Written,
} from "./documents.js";
export type { Collections, VerifyOptions } from "./collections.js";
export type { Applied, ApplyMessage, EnrollOptions, Enrollments } from "./enrollments.js";
export type {
  ConsumeOptions, Consumer, CreateSubscriptionOptions, Delivery, Subscriptions, Watch, WatchItem, WatchOptions,
} from "./feed.js";
export type { AcquireOptions, HeldLease, HoldOptions, Leases } from "./leases.js";
export type { PushResult, Queues, ReceiveOptions, Receiver, RollbackOptions, Schedules, TokenResult } from "./queues.js";
export type { Transaction, TransactionInfo, Transactions } from "./transactions.js";
export { Binary, BSONRegExp, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from "bson";
export * as testing from "./testing.js";
