// Enrollments: sets inside documents that end right although messages arrive in any order, several times, at once.
import { type CallOptions, type Core, isServiceError, withError } from "./core.js";
import { type ChangeOptions, changeOf, guarded } from "./documents.js";
import { failure, written } from "./duplex.js";
import { type Refusal, type StrataError, isRetryablePart } from "./errors.js";
import { CollectionNotFound } from "./gen/reasons.js";
import { EnrollmentService } from "./gen/strata/v1/enrollment_service_pb.js";
import type {
  ApplyResponse,
  EnrollResponse,
  EnrollmentOperation,
  GetEnrollmentsResponse,
  ListRosterRequestInit,
  PurgeTombstonesRequestInit,
  PurgeTombstonesResponse,
  RosterEntry,
} from "./gen/types.js";
import { answerOf, messageOf } from "./messages.js";

const { method: rpc } = EnrollmentService;
const kOnTheirWayMax = 1000;

export interface EnrollOptions extends ChangeOptions, CallOptions {
  /** The students' collection. Default: "students". */
  collection?: string | undefined;
  /** The member that holds the set. Default: "classes". */
  set?: string | undefined;
}

/** One message of `apply`. */
export interface ApplyMessage extends ChangeOptions {
  operation: Exclude<EnrollmentOperation, "UNSPECIFIED">;
  studentId: string;
  className: string;
  sequenceNumber: bigint | number;
  collection?: string | undefined;
  set?: string | undefined;
}

/** The result of one message. */
export type Applied = Omit<ApplyResponse, "error"> & {
  /** Why the message was refused: the error of a separate call. */
  error?: StrataError;
};

// A message of apply, until its result was given.
interface Sent {
  message: any;
  begun: number;
  answer?: Applied;
}

function requestOf(core: Core, options: EnrollOptions): object {
  const { actor, onBehalfOf, reason, labels, signal, ...rest } = options;
  void [actor, onBehalfOf, reason, labels, signal];
  return { ...rest, change: changeOf(core, options) };
}

export class Enrollments {
  constructor(private readonly core: Core) {}

  /** Safe to repeat: the sequence number says which message is the newest. */
  enroll(studentId: string, className: string, sequenceNumber: bigint | number, options: EnrollOptions = {}): Promise<EnrollResponse> {
    return this.one("enroll", { studentId, className, sequenceNumber }, options);
  }

  unenroll(studentId: string, className: string, sequenceNumber: bigint | number, options: EnrollOptions = {}): Promise<EnrollResponse> {
    return this.one("unenroll", { studentId, className, sequenceNumber }, options);
  }

  private one(method: "enroll" | "unenroll", what: object, options: EnrollOptions): Promise<EnrollResponse> {
    const request = { ...what, ...requestOf(this.core, options) };
    return guarded(() => this.core.plainCall<EnrollResponse>(rpc[method], request, { signal: options.signal }));
  }

  async get(
    studentId: string,
    options: { collection?: string; set?: string; includeTombstones?: boolean } & CallOptions = {},
  ): Promise<GetEnrollmentsResponse> {
    const { signal, ...rest } = options;
    try {
      return await this.core.plainCall(rpc.getEnrollments, { studentId, ...rest }, { signal });
    } catch (error) {
      if (!(error instanceof CollectionNotFound)) throw error;
      return answerOf({ enrollments: [], version: 0n });
    }
  }

  roster(
    className: string,
    options: Omit<ListRosterRequestInit, "className" | "pageToken"> & CallOptions = {},
  ): AsyncGenerator<RosterEntry, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listRoster, { className, ...rest }, "students", { signal, emptyWithoutCollection: true });
  }

  /**
   * Applies messages as they come, with a result for each, in their order. At most 1,000 messages are on their way: `apply` takes
   * more of `messages` only as results are taken. After a lost connection, unanswered messages are sent again,
   * as are messages refused for a repeatable reason.
   */
  async *apply(
    messages: AsyncIterable<ApplyMessage> | Iterable<ApplyMessage>,
    options: CallOptions = {},
  ): AsyncGenerator<Applied, void, undefined> {
    const { signal } = options;
    const source = Symbol.asyncIterator in messages ? messages[Symbol.asyncIterator]() : messages[Symbol.iterator]();
    const attempts = this.core.attempts(rpc.apply.idempotency);
    attempts.streams = true;
    // All whose results were not given; of those, what the stream that is open has not answered.
    const sent: Sent[] = [];
    let onTheirWay: Sent[] = [];
    let retiring: Refusal | undefined; // why another stream has to ask again
    let stream: ReturnType<Core["duplex"]> | undefined;
    let ended = false; // of the messages
    let stopped = false; // nobody wants results any more
    let broken: { error: unknown } | undefined;
    let wake = () => {};
    let woken = new Promise<void>((resolve) => (wake = resolve));
    const notify = () => {
      wake();
      woken = new Promise<void>((resolve) => (wake = resolve));
    };

    // One task for all streams: what it sends while there is none is sent with the rest once there is one again.
    const pump = async () => {
      try {
        for (;;) {
          while (sent.length >= kOnTheirWayMax && !stopped) await woken;
          if (stopped) return;
          const { value, done } = await source.next();
          if (done) break;
          const message = messageOf(rpc.apply.input, requestOf(this.core, value));
          const entry = { message, begun: performance.now() };
          sent.push(entry);
          notify();
          if (stream === undefined || retiring !== undefined) continue;
          onTheirWay.push(entry);
          await written(stream, message);
        }
        ended = true;
        stream?.end();
      } catch (error) {
        broken = { error };
        stream?.cancel();
      }
      notify();
    };
    const abort = () => {
      stream?.cancel();
      notify();
    };
    signal?.addEventListener("abort", abort, { once: true });
    void pump();
    try {
      for (;;) {
        while (sent.length === 0 && !ended && broken === undefined && !signal?.aborted) await woken;
        if (signal?.aborted) throw attempts.aborted(signal, sent.length > 0);
        if (broken !== undefined) throw broken.error;
        if (sent.length === 0) return;
        const opened = this.core.duplex(rpc.apply);
        opened.on("error", () => {});
        retiring = undefined;
        onTheirWay = sent.filter((each) => each.answer === undefined);
        for (const { message } of onTheirWay) opened.write(message);
        stream = opened;
        if (ended) opened.end();
        let failed: unknown;
        try {
          for await (const response of opened) {
            const entry = onTheirWay.shift();
            if (entry === undefined) continue;
            const result = this.core.plain<any>(rpc.apply.output, response);
            const { error } = result;
            if (error !== undefined && isRetryablePart(error) && performance.now() - entry.begun < this.core.retryFor) {
              // Another stream asks again, once this one has answered what it was told. That is invited, as by the RetryInfo that a call of
              // its own would have been refused with.
              retiring = { ...error, retryDelay: 0 };
              if (!opened.writableEnded) opened.end();
              continue;
            }
            attempts.succeeded();
            entry.answer = withError<Applied>(result);
            while (sent[0]?.answer !== undefined) {
              const { answer } = sent.shift()!;
              notify();
              yield answer!;
            }
          }
        } catch (error) {
          if (!isServiceError(error)) throw error;
          failed = error;
        }
        stream = undefined;
        if (signal?.aborted) throw attempts.aborted(signal, sent.length > 0);
        if (broken !== undefined) throw (broken as { error: unknown }).error;
        if (failed === undefined && sent.length === 0) continue;
        const pause = attempts.failed(failed === undefined ? (retiring ?? failure(failed)) : failure(failed));
        if (pause === undefined) throw attempts.error();
        await this.core.pause(pause, signal, attempts);
      }
    } finally {
      stopped = true;
      notify();
      signal?.removeEventListener("abort", abort);
      stream?.cancel();
      if (!ended) void Promise.resolve(source.return?.()).catch(() => {});
    }
  }

  /** Page after page, until all students were looked at. */
  async purgeTombstones(
    throughSequenceNumber: bigint | number,
    options: Omit<PurgeTombstonesRequestInit, "throughSequenceNumber" | "change" | "pageToken"> & ChangeOptions & CallOptions = {},
  ): Promise<Omit<PurgeTombstonesResponse, "nextPageToken">> {
    const request = { throughSequenceNumber, ...requestOf(this.core, options) } as any;
    let sum: Omit<PurgeTombstonesResponse, "nextPageToken"> | undefined;
    for (;;) {
      const details = { signal: options.signal };
      const { nextPageToken, ...page } = await this.core.plainCall<PurgeTombstonesResponse>(rpc.purgeTombstones, request, details);
      const least = sum !== undefined && sum.throughSequenceNumber < page.throughSequenceNumber ? sum : page;
      sum = answerOf({
        examined: (sum?.examined ?? 0n) + page.examined,
        purgedStudents: (sum?.purgedStudents ?? 0n) + page.purgedStudents,
        purgedTombstones: (sum?.purgedTombstones ?? 0n) + page.purgedTombstones,
        refusedStudentIds: [...(sum?.refusedStudentIds ?? []), ...page.refusedStudentIds],
        throughSequenceNumber: least.throughSequenceNumber,
      });
      // Where nothing may go at present, asking again at once does not help.
      if (nextPageToken === "" || page.throughSequenceNumber === 0n) return sum;
      request.pageToken = nextPageToken;
    }
  }
}
