// Leases: who may act for a name at present.
import { type CallOptions, type Core, kReads, kWrites, kWritesOnce } from "./core.js";
import { StrataError } from "./errors.js";
import { LeaseService } from "./gen/strata/v1/lease_service_pb.js";
import type { AcquireRequestInit, Lease, LeaseTokenInit, RenewRequestInit } from "./gen/types.js";

const { method: rpc } = LeaseService;

export type AcquireOptions = Omit<AcquireRequestInit, "name" | "holder"> & CallOptions;

/** A lease that is renewed until it is released, or lost. */
export class HeldLease {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private renewing: Promise<void> = Promise.resolve();
  private ended = false;

  constructor(
    private readonly leases: Leases,
    /** As Acquire gave it. */
    readonly lease: Lease,
    private validUntil: number,
  ) {
    this.plan();
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
  private plan(): void {
    const third = this.lease.ttl! / 3;
    const left = this.validUntil - performance.now();
    this.timer = setTimeout(() => {
      this.renewing = this.renew();
    }, Math.max(0, Math.min(third, left)));
  }

  private async renew(): Promise<void> {
    const sent = performance.now();
    const left = this.validUntil - sent;
    if (left <= 0) return this.lost(new Error(`lease ${this.lease.name} could not be renewed in time`));
    try {
      // Not longer than the lease lasts: a renewal that hangs must not hide that it is over.
      const signal = AbortSignal.timeout(Math.ceil(left));
      await this.leases.renew(this.lease.name, this.lease.token, { signal });
      this.validUntil = sent + this.lease.ttl!;
    } catch (error) {
      if (error instanceof StrataError && error.reason === "LEASE_LOST") return this.lost(error);
      if (performance.now() >= this.validUntil) return this.lost(error);
    }
    if (!this.ended) this.plan();
  }

  private lost(reason: unknown): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    this.controller.abort(reason);
  }

  /** Gives the lease back. A lost lease is no longer the caller's: nothing happens. */
  async release(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    await this.renewing;
    try {
      await this.leases.release(this.lease.name, this.lease.token);
    } catch (error) {
      if (!(error instanceof StrataError && error.reason === "LEASE_LOST")) throw error;
    }
  }
}

export class Leases {
  constructor(private readonly core: Core) {}

  /** LeaseHeld if another holder has it, after `wait`. */
  async acquire(name: string, holder: string, options: AcquireOptions = {}): Promise<Lease> {
    const { signal, ...rest } = options;
    const details = { kind: kWritesOnce, signal, wait: options.wait };
    return (await this.core.plainCall<any>(rpc.acquire, { name, holder, ...rest }, details)).lease;
  }

  /** LeaseLost if the token is not the lease's. */
  async renew(
    name: string,
    token: bigint | number,
    options: Omit<RenewRequestInit, "name" | "token"> & CallOptions = {},
  ): Promise<Lease> {
    const { signal, ...rest } = options;
    return (await this.core.plainCall<any>(rpc.renew, { name, token, ...rest }, { kind: kWrites, signal })).lease;
  }

  async release(name: string, token: bigint | number, options: CallOptions = {}): Promise<Lease> {
    return (await this.core.plainCall<any>(rpc.release, { name, token }, { kind: kWrites, signal: options.signal })).lease;
  }

  /** LeaseNotFound if none of this name was ever acquired. */
  async get(name: string, options: CallOptions = {}): Promise<Lease> {
    return (await this.core.plainCall<any>(rpc.getLease, { name }, { kind: kReads, signal: options.signal })).lease;
  }

  list(options: { prefix?: string; pageSize?: number } & CallOptions = {}): AsyncGenerator<Lease, void, undefined> {
    const { signal, ...rest } = options;
    return this.core.pages(rpc.listLeases, rest, "leases", { signal });
  }

  /** Acquires a lease, renews it each third of its ttl while `work` runs, and gives it back. */
  async hold<R>(name: string, holder: string, work: (held: HeldLease) => R | Promise<R>, options: AcquireOptions = {}): Promise<R> {
    const sent = performance.now();
    let lease = await this.acquire(name, holder, options);
    let from = sent;
    // One that waited was granted at a time that this side does not know; a renewal says when it counts from at the latest.
    if (options.wait !== undefined) {
      from = performance.now();
      lease = { ...(await this.renew(name, lease.token)), position: lease.position };
    }
    const held = new HeldLease(this, lease, from + lease.ttl!);
    try {
      return await work(held);
    } finally {
      await held.release();
    }
  }
}
