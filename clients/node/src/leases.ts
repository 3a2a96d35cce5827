// Leases: who may act for a name at present.
import { type CallOptions, type Core, pauseBefore } from "./core.js";
import { StrataError, kFailedPrecondition } from "./errors.js";
import { LeaseLost } from "./gen/reasons.js";
import { LeaseService } from "./gen/strata/v1/lease_service_pb.js";
import type { AcquireRequestInit, Lease, LeaseTokenInit, RenewRequestInit } from "./gen/types.js";

const { method: rpc } = LeaseService;

export type AcquireOptions = Omit<AcquireRequestInit, "name" | "holder"> & CallOptions;

export type HoldOptions = AcquireOptions & {
  /** Called as soon as the lease is lost; `hold` then ends as the work does. */
  onLost?: ((error: LeaseLost) => void) | undefined;
};

const kReleasePatience = 3000;

/** A lease that is renewed until it is released, or lost. */
export class HeldLease {
  private readonly controller = new AbortController();
  private readonly leaving = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private failures = 0;
  private ended = false;

  constructor(
    private readonly leases: Leases,
    /** As Acquire gave it. */
    readonly lease: Lease,
    private readonly ttl: number | undefined,
    private validUntil: number,
  ) {
    this.plan(lease.ttl! / 3);
  }

  /** Aborted when the lease is lost: another holder has it, or it could not be renewed in time. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** For the `lease` option of writes. */
  get token(): LeaseTokenInit {
    return { name: this.lease.name, token: this.lease.token };
  }

  // The ttl counts from when the request was sent, so that this side never believes in it for longer than the server.
  private plan(pause: number): void {
    const left = this.validUntil - performance.now();
    this.timer = setTimeout(() => void this.renew(), Math.max(0, Math.min(pause, left)));
  }

  private async renew(): Promise<void> {
    const sent = performance.now();
    const left = this.validUntil - sent;
    if (left <= 0) return this.lost();
    // Not longer than the lease lasts: a renewal that hangs must not hide that it is over.
    const late = setTimeout(() => this.lost(), left);
    try {
      await this.leases.renew(this.lease.name, this.lease.token, { signal: this.leaving.signal, ttl: this.ttl });
      this.validUntil = sent + this.lease.ttl!;
      this.failures = 0;
    } catch (error) {
      if (error instanceof LeaseLost) this.lost(error);
      this.failures++;
    } finally {
      clearTimeout(late);
    }
    if (!this.ended) this.plan(this.failures === 0 ? this.lease.ttl! / 3 : pauseBefore(this.failures));
  }

  private lost(error = this.notRenewed()): void {
    if (this.end()) this.controller.abort(error);
  }

  private notRenewed(): LeaseLost {
    const message = `lease ${this.lease.name} could not be renewed in time`;
    return new LeaseLost({ code: kFailedPrecondition, reason: "LEASE_LOST", message, metadata: { lease: this.lease.name } });
  }

  // False: it has ended before.
  private end(): boolean {
    if (this.ended) return false;
    this.ended = true;
    clearTimeout(this.timer);
    // A renewal that hangs is not waited for.
    this.leaving.abort();
    return true;
  }

  /** Gives the lease back. A lost lease is no longer the caller's: nothing happens. Without an answer within 3 s it expires by itself. */
  async release(): Promise<void> {
    if (!this.end()) return;
    try {
      await this.leases.release(this.lease.name, this.lease.token, { signal: AbortSignal.timeout(kReleasePatience) });
    } catch (error) {
      if (error instanceof StrataError && error.reason !== "" && !(error instanceof LeaseLost)) throw error;
    }
  }
}

export class Leases {
  constructor(private readonly core: Core) {}

  /** LeaseHeld if another holder has it, after `wait`. */
  async acquire(name: string, holder: string, options: AcquireOptions = {}): Promise<Lease> {
    const { signal, ...rest } = options;
    const details = { signal, wait: options.wait };
    return (await this.core.plainCall<any>(rpc.acquire, { name, holder, ...rest }, details)).lease;
  }

  /** LeaseLost if the token is not the lease's. */
  async renew(
    name: string,
    token: bigint | number,
    options: Omit<RenewRequestInit, "name" | "token"> & CallOptions = {},
  ): Promise<Lease> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.renew, { name, token, ...rest }, { signal })).lease;
  }

  async release(name: string, token: bigint | number, options: CallOptions = {}): Promise<Lease> {
    return (await this.core.plainCall<any>(rpc.release, { name, token }, { signal: options.signal })).lease;
  }

  /** LeaseNotFound if none of this name was ever acquired. */
  async get(name: string, options: CallOptions = {}): Promise<Lease> {
    return (await this.core.plainCall<any>(rpc.getLease, { name }, { signal: options.signal })).lease;
  }

  list(options: { prefix?: string; pageSize?: number } & CallOptions = {}): AsyncGenerator<Lease, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listLeases, rest, "leases", { signal });
  }

  /**
   * Acquires a lease, renews it each third of its ttl while `work` runs, and gives it back. Rejects with LeaseLost if it was lost, unless
   * `work` throws or there is `onLost`.
   */
  async hold<R>(name: string, holder: string, work: (held: HeldLease) => R | Promise<R>, options: HoldOptions = {}): Promise<R> {
    const { onLost, ...acquiring } = options;
    const sent = performance.now();
    let lease = await this.acquire(name, holder, acquiring);
    let from = sent;
    // One that waited was granted at a time that this side does not know; a renewal says when it counts from at the latest.
    if (options.wait !== undefined) {
      from = performance.now();
      lease = Object.assign(await this.renew(name, lease.token, { ttl: options.ttl }), { position: lease.position });
    }
    const held = new HeldLease(this, lease, options.ttl, from + lease.ttl!);
    if (onLost !== undefined) held.signal.addEventListener("abort", () => onLost(held.signal.reason), { once: true });
    let result: R;
    try {
      result = await work(held);
    } finally {
      await held.release();
    }
    if (held.signal.aborted && onLost === undefined) throw held.signal.reason;
    return result;
  }
}
