// Why calls fail. reasons.ts, made from error_reason.proto, has a class for each reason.
import { getOption } from "@bufbuild/protobuf";
import type { Metadata, ServiceError } from "@grpc/grpc-js";
import { ErrorReasonSchema } from "./gen/strata/v1/error_reason_pb.js";
import { retry_delay_ms } from "./gen/strata/v1/options_pb.js";

const kCodeNames = [
  "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
  "UNAUTHENTICATED",
];

export const kCancelled = 1;
export const kUnknown = 2;
export const kDeadlineExceeded = 4;
export const kNotFound = 5;
export const kAlreadyExists = 6;
export const kResourceExhausted = 8;
export const kFailedPrecondition = 9;
export const kAborted = 10;
export const kInternal = 13;
export const kUnavailable = 14;

/** The error of the server, or of gRPC if no server answered. */
export interface Refusal {
  code: number;
  /** google.rpc.ErrorInfo.reason. Empty: no Strata server gave one. */
  reason: string;
  message: string;
  metadata: { [name: string]: string };
  /** google.rpc.RetryInfo, in milliseconds. */
  retryDelay?: number;
  /** There was no connection over which the call could have been sent. */
  unsent?: boolean;
}

// What grpc-js says itself of a call that it never sent.
export const kNoConnection = "No connection established";
const kUnsent = [kNoConnection, "Name resolution failed"];

/** A call failed. Below it is one class for each reason; a reason that this client does not know is this class, with that `reason`. */
export class StrataError extends Error {
  /** "VERSION_CONFLICT"; "" if no Strata server gave one. */
  readonly reason: string;
  /** The canonical code, such as "ABORTED". */
  readonly code: string;
  /** The facts that error_reason.proto lists for the reason. */
  readonly metadata: { readonly [name: string]: string };
  /** The time in milliseconds after which another try makes sense. Unset: the server does not invite one. */
  readonly retryDelay: number | undefined;
  /** The call was a write with an unknown outcome. */
  readonly outcomeUnknown: boolean;
  /** The request id of the call. Unset: it had none. */
  readonly requestId: string | undefined;

  constructor(refusal: Refusal, outcomeUnknown = false, requestId?: string, cause?: unknown) {
    const code = kCodeNames[refusal.code] ?? `CODE_${refusal.code}`;
    super(`${refusal.reason || code}: ${refusal.message}`, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.reason = refusal.reason;
    this.code = code;
    this.metadata = refusal.metadata;
    this.retryDelay = refusal.retryDelay;
    this.outcomeUnknown = outcomeUnknown;
    this.requestId = requestId;
  }
}

/** The caller's AbortSignal ended the call; `cause` is the signal's reason. */
export class AbortError extends StrataError {}

/** A value that documents cannot hold; nothing was sent. */
export class InvalidValue extends TypeError {
  /** Its path, a JSON Pointer. */
  readonly path: string;
  /** The problem with it. */
  readonly problem: string;

  constructor(path: string, problem: string) {
    super(`${path === "" ? "the content" : `member "${path}"`} ${problem}`);
    this.name = "InvalidValue";
    this.path = path;
    this.problem = problem;
  }
}

// The details of a status are google.rpc.Status, ErrorInfo and RetryInfo, of which so little is wanted that they are read by hand.
function* fields(bytes: Uint8Array): Generator<{ number: number; varint: number; bytes: Uint8Array }> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = { number: Math.floor(tag / 8), varint: 0, bytes: new Uint8Array() };
    if (tag % 8 === 0) {
      field.varint = varint();
    } else if (tag % 8 === 2) {
      const length = varint();
      field.bytes = bytes.subarray(at, at + length);
      at += length;
    } else {
      return; // none of these messages has one
    }
    yield field;
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

function readErrorInfo(info: Uint8Array, refusal: Refusal): void {
  for (const field of fields(info)) {
    if (field.number === 1) refusal.reason = text(field.bytes);
    if (field.number !== 3) continue;
    let name = "";
    let value = "";
    for (const part of fields(field.bytes)) {
      if (part.number === 1) name = text(part.bytes);
      if (part.number === 2) value = text(part.bytes);
    }
    refusal.metadata[name] = value;
  }
}

function readRetryInfo(info: Uint8Array, refusal: Refusal): void {
  refusal.retryDelay = 0;
  for (const field of fields(info)) {
    if (field.number !== 1) continue;
    for (const part of fields(field.bytes)) {
      if (part.number === 1) refusal.retryDelay += part.varint * 1000;
      if (part.number === 2) refusal.retryDelay += Math.ceil(part.varint / 1e6);
    }
  }
}

export function refusalOf(error: Partial<ServiceError>): Refusal {
  const refusal: Refusal = {
    code: error.code ?? kUnknown,
    reason: "",
    message: error.details ?? error.message ?? "",
    metadata: {},
  };
  const details = (error.metadata as Metadata | undefined)?.get("grpc-status-details-bin")[0];
  if (!(details instanceof Uint8Array)) {
    // What grpc-js says where a connection was lost just before it wrote to it; no server has said INTERNAL.
    if (refusal.code === kInternal && refusal.message.startsWith("Write error: ")) refusal.code = kUnavailable;
    refusal.unsent = refusal.code === kUnavailable && kUnsent.some((begin) => refusal.message.startsWith(begin));
    return refusal;
  }
  for (const status of fields(details)) {
    if (status.number !== 3) continue;
    let type = "";
    let value: Uint8Array = new Uint8Array();
    for (const part of fields(status.bytes)) {
      if (part.number === 1) type = text(part.bytes);
      if (part.number === 2) value = part.bytes;
    }
    if (type.endsWith("/google.rpc.ErrorInfo")) readErrorInfo(value, refusal);
    if (type.endsWith("/google.rpc.RetryInfo")) readRetryInfo(value, refusal);
  }
  return refusal;
}

/** Whether the same call, with the same request id, may succeed if it is made again. */
export function isRetryable(refusal: Refusal): boolean {
  switch (refusal.code) {
    case kUnavailable:
    case kDeadlineExceeded:
      return true;
    case kCancelled:
      return refusal.reason === "";
    default:
      // That of LEASE_HELD tells when the lease expires; the call has waited as long as it was to.
      return refusal.retryDelay !== undefined && refusal.reason !== "LEASE_HELD";
  }
}

/** The same for a call that does harm if it is done twice: only where the server said that it did nothing. */
export function isRetryableOnce(refusal: Refusal): boolean {
  if (refusal.code === kUnavailable) return refusal.reason === "DRAINING";
  return (refusal.code === kResourceExhausted || refusal.code === kAborted) && isRetryable(refusal);
}

const kRetried = new Set(ErrorReasonSchema.values.filter((value) => getOption(value, retry_delay_ms) > 0).map(({ name }) => name));

/** The same as isRetryable for a part of an answer, which carries no RetryInfo: its reason says whether one like it comes with that. */
export function isRetryablePart(refusal: Refusal): boolean {
  return isRetryable(refusal) || kRetried.has(`ERROR_REASON_${refusal.reason}`);
}

/** Whether an attempt before may have brought about what the call was refused for, unless the server knows it again by a request id. */
export function mayBeOfOwnDoing(refusal: Refusal): boolean {
  return [kAlreadyExists, kNotFound, kFailedPrecondition, kAborted].includes(refusal.code);
}

/** Whether a write that ended so may have been done. */
export function leavesOutcomeUnknown(refusal: Refusal): boolean {
  switch (refusal.code) {
    case kDeadlineExceeded:
    case kCancelled:
      return true;
    case kUnavailable:
      return (refusal.reason === "" && refusal.unsent !== true) || refusal.reason === "OUTCOME_UNKNOWN";
    case kUnknown:
    case kInternal:
    case kResourceExhausted:
      // gRPC says the last one by itself, of a call that was reset and of an answer too large for it.
      return refusal.reason === "";
    default:
      return refusal.reason === "OUTCOME_UNKNOWN";
  }
}
