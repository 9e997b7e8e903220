// Changes the state of sandboxes, as the state machine allows. Each change is a compare-and-set, and wakes
// the callers of this process that wait for it.

import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@skerry/base";
import type {
  ImageChange,
  Sandbox,
  SandboxChanges,
  SandboxEntry,
  SandboxLimits,
  SandboxRepository,
  SandboxState,
  TransitionReason,
} from "@skerry/store";
import type { Liveness } from "../../liveness.ts";
import { next, PASSING_STATES, type SandboxEvent } from "./lifecycle.ts";

/** Actors of the journal that are not a caller's key. */
export const PLATFORM = "platform";
export const TRAFFIC = "traffic";

/** The identity of this API process, and what it knows about the others. */
export interface Owner {
  /** Stays the same after a restart. */
  readonly id: string;
  /** Differs for each run of the process. */
  readonly run: string;
  readonly liveness: Liveness;
}

export function newRun(ownerId: string): string {
  return `${ownerId}/${randomBytes(4).toString("hex")}`;
}

export interface MoveFacts {
  readonly actor: string;
  readonly reason?: TransitionReason;
  readonly set?: SandboxChanges;
  readonly image?: ImageChange;
  /** Applies only while the team has room for one more running sandbox (see TeamLimits.admit). */
  readonly limits?: SandboxLimits;
  /** Applies only while the team has fewer snapshots (see TeamLimits.admitSnapshot). */
  readonly maxSnapshots?: number | undefined;
  /** Applies only when the sandbox has not changed since it was read. */
  readonly exact?: boolean;
}

export type Applied =
  | { readonly kind: "moved"; readonly sandbox: Sandbox }
  /** Another caller changed the sandbox first: read it again. */
  | { readonly kind: "stale" }
  | { readonly kind: "join" | "wait" | "refuse" };

/** Interval at which a waiting caller reads the state, because another process may have changed it. */
const POLL_MS = 100;

export class SandboxMoves {
  readonly #sandboxes: SandboxRepository;
  readonly #clock: Clock;
  readonly #changed = new EventEmitter().setMaxListeners(0);
  /** This run of this process. Operations of its earlier runs have no owner. */
  readonly owner: string;
  readonly #ownerId: string;
  readonly #liveness: Liveness;
  readonly #busy = new Map<string, number>();

  constructor(deps: { sandboxes: SandboxRepository; clock: Clock; owner: Owner }) {
    this.#sandboxes = deps.sandboxes;
    this.#clock = deps.clock;
    this.#ownerId = deps.owner.id;
    this.#liveness = deps.owner.liveness;
    this.owner = deps.owner.run;
  }

  async apply(sandbox: Pick<Sandbox, "id" | "state" | "version">, event: SandboxEvent, facts: MoveFacts): Promise<Applied> {
    const move = next(sandbox.state, event);
    if (move.kind !== "move") return move;
    const changed = await this.#sandboxes.transition(sandbox.id, {
      from: sandbox.state,
      to: move.to,
      event,
      actor: facts.actor,
      now: this.#clock.now(),
      set: { owner: this.owner, ...facts.set },
      ...(facts.reason === undefined ? {} : { reason: facts.reason }),
      ...(facts.image === undefined ? {} : { image: facts.image }),
      ...(facts.limits === undefined ? {} : { limits: facts.limits }),
      ...(facts.maxSnapshots === undefined ? {} : { maxSnapshots: facts.maxSnapshots }),
      ...(facts.exact ? { version: sandbox.version } : {}),
    });
    if (!changed) return { kind: "stale" };
    this.#changed.emit(sandbox.id);
    return { kind: "moved", sandbox: changed };
  }

  /** Marks the sandbox as being worked on by this process, until the caller calls the returned function. */
  begin(id: string): () => void {
    this.#busy.set(id, (this.#busy.get(id) ?? 0) + 1);
    return () => {
      const left = (this.#busy.get(id) ?? 1) - 1;
      if (left > 0) this.#busy.set(id, left);
      else this.#busy.delete(id);
    };
  }

  async during<T>(id: string, work: () => Promise<T>): Promise<T> {
    const done = this.begin(id);
    try {
      return await work();
    } finally {
      done();
    }
  }

  isBusy(id: string): boolean {
    return this.#busy.has(id);
  }

  /** Whether nobody continues the operations of an owner: it is unknown, an earlier run of this process, or dead. */
  isOrphaned(owner: string): boolean {
    if (owner === "") return true;
    if (owner === this.owner) return false;
    return owner === this.#ownerId || owner.slice(0, owner.lastIndexOf("/")) === this.#ownerId || this.#liveness.isDead(owner);
  }

  /**
   * Waits until a sandbox has left its passing state, or does not exist any more. Any process may work on it.
   * Returns false when the timeout passed first.
   */
  async settled(id: string, limit: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined }): Promise<boolean> {
    const deadline = performance.now() + limit.timeoutMs;
    while (!limit.signal?.aborted) {
      const told = new AbortController();
      const change = once(this.#changed, id, { signal: told.signal }).catch(() => {});
      try {
        const state: SandboxState | undefined = await this.#sandboxes.findState(id);
        if (state === undefined || !PASSING_STATES.has(state)) return true;
        if (performance.now() >= deadline) return false;
        await Promise.race([change, sleep(POLL_MS, undefined, { signal: told.signal }).catch(() => {})]);
      } finally {
        told.abort();
      }
    }
    return false;
  }

  /** Wakes the callers that wait for these sandboxes, after a change that was made without `apply`. */
  announce(sandboxes: readonly Pick<SandboxEntry, "id">[]): void {
    for (const { id } of sandboxes) this.#changed.emit(id);
  }
}
