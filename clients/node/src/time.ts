// Times of the server, to the microsecond: a Date keeps milliseconds, and asking for a document as of a version's commit time
// would find the version before.

export class Time extends Date {
  /** Nanoseconds within the millisecond; the server counts in whole microseconds. */
  readonly nanoseconds: number;

  constructor(milliseconds: number, nanoseconds = 0) {
    super(milliseconds);
    this.nanoseconds = nanoseconds;
  }

  /** Microseconds since 1970. */
  get microseconds(): bigint {
    return BigInt(this.getTime()) * 1000n + BigInt(Math.floor(this.nanoseconds / 1000));
  }

  override toISOString(): string {
    const micros = String(Math.floor(this.nanoseconds / 1000)).padStart(3, "0");
    return super.toISOString().replace("Z", `${micros}Z`);
  }

  override toJSON(): string {
    return this.toISOString();
  }
}
