// Carries out changes of state: what `next` allows, as a compare-and-set, told to those in this process who wait for it.

import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@skerry/base";
import type { ImageChange, Sandbox, SandboxChanges, SandboxEntry, SandboxRepository, SandboxState, TransitionReason } from "@skerry/store";
import type { Liveness } from "../../liveness.ts";
import { next, PASSING_STATES, type SandboxEvent } from "./lifecycle.ts";

/** Who makes something happen, where it is not a caller's key. */
export const PLATFORM = "platform";
export const TRAFFIC = "traffic";

/** This control process, and the others. */
export interface Owner {
  /** The same over restarts. */
  readonly id: string;
  /** Of this run alone. */
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
  /** Only while the team runs fewer sandboxes than this (see TeamLimits.admit). */
  readonly maxOfTeam?: number;
  /** Only when nothing has happened to the sandbox since it was read. */
  readonly exact?: boolean;
}

export type Applied =
  | { readonly kind: "moved"; readonly sandbox: Sandbox }
  /** Somebody else changed it first: read it again. */
  | { readonly kind: "stale" }
  | { readonly kind: "join" | "wait" | "refuse" };

const POLL_MS = 100;

export class SandboxMoves {
  readonly #sandboxes: SandboxRepository;
  readonly #clock: Clock;
  readonly #changed = new EventEmitter().setMaxListeners(0);
  /** This run of this control process; what another run of the same one left is nobody's. */
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
      ...(facts.maxOfTeam === undefined ? {} : { maxOfTeam: facts.maxOfTeam }),
      ...(facts.exact ? { version: sandbox.version } : {}),
    });
    if (!changed) return { kind: "stale" };
    this.#changed.emit(sandbox.id);
    return { kind: "moved", sandbox: changed };
  }

  /** Until the answer is called, this process is at work on the sandbox, however long that takes. */
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

  /** Whether the process that began something is known not to go on with it: nobody, an earlier run of this one, or one that is dead. */
  isOrphaned(owner: string): boolean {
    if (owner === "") return true;
    if (owner === this.owner) return false;
    return owner === this.#ownerId || owner.slice(0, owner.lastIndexOf("/")) === this.#ownerId || this.#liveness.isDead(owner);
  }

  /**
   * Waits until a sandbox is in no passing state, whichever process works on it, or is no more.
   * False when the time was over before.
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

  /** Tells those who wait that something about a sandbox changed without `apply`. */
  announce(sandboxes: readonly Pick<SandboxEntry, "id">[]): void {
    for (const { id } of sandboxes) this.#changed.emit(id);
  }
}
