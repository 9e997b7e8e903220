// What teams do with sandboxes. Each call sees only the team's own. A call that meets a passing state waits for its end and
// looks again, whichever process works on it; how long, is in the timing.

import type { Sandbox, Team } from "@skerry/store";
import { sandboxBusy, sandboxNotFound } from "../errors.ts";
import type { SnapshotName, TemplateReference } from "../templates/reference.ts";
import { type CreateRequest, createSandbox, type Started } from "./create-sandbox.ts";
import type { Acting, SandboxDeps } from "./deps.ts";
import { type Forked, forkSandbox } from "./fork-sandbox.ts";
import { next, PASSING_STATES } from "./lifecycle/lifecycle.ts";
import { PLATFORM, TRAFFIC } from "./lifecycle/moves.ts";
import { listAllRunning, listSandboxes, type RunningQuery, type SandboxList, type SandboxQuery } from "./list-sandboxes.ts";
import { finishPause, newImage } from "./pause-sandbox.ts";
import { alreadyPaused, busyState, cannotFork, cannotPauseNow, cannotSnapshot, conflict, waitedTooLong } from "./refusals.ts";
import { resumeSandbox } from "./resume-sandbox.ts";
import { asShown, type ShownSandbox } from "./shown-sandbox.ts";
import { type SnapshotTaken, snapshotSandbox } from "./snapshot-sandbox.ts";

const MIN_REFRESH_MS = 15_000;
const MIN_WAKE_MS = 300_000;

/** A create request, with the template as the caller named it. */
export interface NewSandboxRequest extends Omit<CreateRequest, "template"> {
  readonly team: Team;
  readonly template: TemplateReference;
}

export interface Connected extends Started {
  readonly sandbox: ShownSandbox;
  /** It was paused before. */
  readonly resumed: boolean;
}

export interface WakeOptions {
  readonly timeoutMs: number;
  readonly memory: boolean;
  readonly signal: AbortSignal;
}

export class SandboxService {
  readonly #deps: SandboxDeps;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
  }

  async create(request: NewSandboxRequest): Promise<Started & { readonly sandbox: ShownSandbox }> {
    const template = await this.#deps.templates.resolve(request.team, request.template);
    const started = await createSandbox(this.#deps, { ...request, template });
    return { ...started, sandbox: asShown(started.sandbox) };
  }

  /** One page of a team's sandboxes. */
  async list(team: Team, query: SandboxQuery): Promise<SandboxList> {
    return await listSandboxes(this.#deps, team, query);
  }

  /** All running sandboxes, newest first; undefined when more than `max` match. */
  async listAllRunning(query: RunningQuery): Promise<readonly ShownSandbox[] | undefined> {
    return await listAllRunning(this.#deps, query);
  }

  /**
   * What became of a create whose process died: the sandbox if it ever ran. An unfinished create is ended, so that a repeated request
   * can begin anew.
   */
  async recoverCreate(id: string): Promise<ShownSandbox | undefined> {
    const { store, kills } = this.#deps;
    for (;;) {
      const sandbox = await store.sandboxes.find(id);
      if (sandbox?.state !== "starting") return sandbox?.startedAt == null ? undefined : asShown(sandbox);
      const begun = await kills.begin(sandbox, "abandon", { reason: "abandoned", actor: PLATFORM });
      if (begun.kind === "moved") kills.finishInBackground(sandbox);
      if (begun.kind !== "stale") return undefined;
    }
  }

  async get(teamId: string, id: string): Promise<ShownSandbox> {
    const sandbox = await this.#find(teamId, id);
    if (sandbox.state === "starting" || sandbox.state === "killing") throw sandboxNotFound(id);
    return asShown(sandbox);
  }

  /** Makes sure that it runs, and for at least `timeoutMs` from now; never shortens. */
  async connect(by: Acting, id: string, options: WakeOptions): Promise<Connected> {
    return await this.#settling(by.teamId, id, options.signal, async (sandbox) => {
      if (sandbox.state === "starting") throw sandboxNotFound(id);
      if (sandbox.state === "killing") throw sandboxBusy(id, "killed");
      if (sandbox.state === "running") {
        if (!(await this.#moveEnd(sandbox, { timeoutMs: options.timeoutMs, onlyLater: true }))) return "again";
        return { sandbox: await this.get(by.teamId, id), memoryLost: undefined, resumed: false };
      }
      if (sandbox.state !== "paused") return "wait";
      return await this.#resume(sandbox, { ...options, actor: by.actor });
    });
  }

  /** As older clients ask for it: refused when it runs already. */
  async resume(by: Acting, id: string, options: WakeOptions & { readonly autoPause: boolean | undefined }): Promise<Connected> {
    let joined = false;
    return await this.#settling(by.teamId, id, options.signal, async (sandbox) => {
      if (sandbox.state === "starting" || sandbox.state === "killing") throw sandboxNotFound(id);
      if (sandbox.state === "snapshotting") throw conflict(`Sandbox snapshot is currently being created for sandbox '${id}'`);
      if (sandbox.state === "running") {
        if (!joined) throw conflict(`Sandbox ${id} is already running`);
        return { sandbox: asShown(sandbox), memoryLost: undefined, resumed: true };
      }
      if (sandbox.state !== "paused") {
        joined ||= sandbox.state === "resuming";
        return "wait";
      }
      return await this.#resume(sandbox, { ...options, actor: by.actor });
    });
  }

  /** Answers when it is paused, and why that was without its memory if it was. Several callers at once wait for one pause. */
  async pause(
    by: Acting,
    id: string,
    options: { memory: boolean; requireHealthyGuest: boolean; signal: AbortSignal },
  ): Promise<{ readonly memoryLost: string | undefined }> {
    const { moves, store } = this.#deps;
    let joinedAt: number | undefined;
    return await this.#settling(
      by.teamId,
      id,
      options.signal,
      async (sandbox) => {
        // The pause that was waited for counts, whatever has been done to the sandbox since.
        if (joinedAt !== undefined && (await store.sandboxes.findEvent(id, joinedAt + 1)) === "paused") return { memoryLost: undefined };
        const image = newImage(this.#deps, sandbox, { kind: "pause", memory: options.memory });
        const facts = { actor: by.actor, reason: "request", set: { imageId: image.id }, image: { kind: "begin", image } } as const;
        const applied = await moves.apply(sandbox, "pause", { ...facts, exact: true });
        if (applied.kind === "moved") return await finishPause(this.#deps, applied.sandbox, { ...options, ...facts });
        if (applied.kind === "join") joinedAt = sandbox.version;
        if (applied.kind !== "refuse") return applied.kind === "stale" ? "again" : "wait";
        throw sandbox.state === "paused" || sandbox.state === "copying" ? alreadyPaused(id) : sandboxNotFound(id);
      },
      cannotPauseNow,
    );
  }

  /**
   * Resumes it as traffic does, and answers when its state is another one. The time that it gets is the one that it was
   * created with, but not less than five minutes.
   */
  async wake(id: string, signal: AbortSignal): Promise<void> {
    const { store, clock, limits } = this.#deps;
    const found = await store.sandboxes.find(id);
    if (!found) throw sandboxNotFound(id);
    const timeoutMs = Math.min(Math.max(found.timeoutMs, MIN_WAKE_MS), limits.maxRunMs(found.teamId));
    await this.#settling(found.teamId, id, signal, async (sandbox) => {
      if (sandbox.state === "paused") {
        if (!sandbox.autoResume || sandbox.imageHasMemory !== true) throw sandboxNotFound(id);
        return await this.#resume(sandbox, { timeoutMs, memory: true, signal, actor: TRAFFIC });
      }
      if (PASSING_STATES.has(sandbox.state)) return "wait";
      const now = clock.now();
      const isDue = asShown(sandbox).endAt <= now && sandbox.autoPause && sandbox.autoResume;
      // Its time is over, and nobody has begun to pause it: it does not have to go and come back.
      if (isDue) await store.sandboxes.setEnd(id, { endAt: now + timeoutMs, now, onlyLater: true });
      return undefined;
    });
  }

  async snapshot(
    by: Acting,
    id: string,
    options: { name: SnapshotName; memory: boolean; buildId: string | undefined; signal: AbortSignal },
  ): Promise<SnapshotTaken> {
    return await this.#settling(by.teamId, id, options.signal, async (sandbox) => {
      if (next(sandbox.state, "snapshot").kind !== "move") throw cannotSnapshot(sandbox);
      return (await snapshotSandbox(this.#deps, sandbox, { ...options, actor: by.actor })) ?? "again";
    });
  }

  async fork(
    by: Acting,
    id: string,
    options: { readonly timeoutMs: number; readonly ids: readonly string[]; readonly signal: AbortSignal },
  ): Promise<Forked> {
    this.#deps.limits.assertForks(by.teamId, options.ids.length);
    return await this.#settling(by.teamId, id, options.signal, async (sandbox) => {
      if (sandbox.state !== "running" && sandbox.state !== "paused") throw cannotFork(sandbox);
      return (await forkSandbox(this.#deps, sandbox, { ...options, by })) ?? "again";
    });
  }

  /** Sets the end to `timeoutMs` from now, sooner or later than it was. */
  async setTimeout(teamId: string, id: string, timeoutMs: number): Promise<void> {
    await this.#setEnd(teamId, id, { timeoutMs, onlyLater: false });
  }

  async refresh(teamId: string, id: string, durationMs: number): Promise<void> {
    await this.#setEnd(teamId, id, { timeoutMs: Math.max(durationMs, MIN_REFRESH_MS), onlyLater: true });
  }

  /**
   * Answers when nothing of it is left. Several callers at once wait for one kill; one who came before it was over
   * counts among them, however long the way to here was.
   */
  async kill(by: Acting, id: string, arrivedAt: number): Promise<void> {
    const { store, kills } = this.#deps;
    const deadline = performance.now() + this.#deps.timing.waitTimeoutMs;
    for (;;) {
      const sandbox = await store.sandboxes.find(id);
      if (!sandbox || sandbox.teamId !== by.teamId) throw sandboxNotFound(id);
      if (sandbox.state === "ended") {
        if (sandbox.endReason === "request" && (sandbox.endedAt ?? 0) > arrivedAt) return;
        throw sandboxNotFound(id, sandbox);
      }
      const begun = await kills.begin(sandbox, "kill", { reason: "request", actor: by.actor });
      if (begun.kind === "moved" || begun.kind === "join") return await kills.finish(sandbox);
      if (begun.kind === "wait") await this.#wait(sandbox, deadline, undefined, waitedTooLong);
    }
  }

  /** Throws when no sandbox of the team may run for so long. */
  assertTimeout(teamId: string, timeoutSeconds: number): void {
    this.#deps.limits.assertTimeout(teamId, timeoutSeconds);
  }

  async #resume(sandbox: Sandbox, options: WakeOptions & { actor: string; autoPause?: boolean | undefined }): Promise<Connected | "again"> {
    const started = await resumeSandbox(this.#deps, sandbox, options);
    return started ? { ...started, sandbox: asShown(started.sandbox), resumed: true } : "again";
  }

  /** Does `work` on the sandbox as it is, again and again until that is done: after whatever is under way where it says `wait`. */
  async #settling<T>(
    teamId: string,
    id: string,
    signal: AbortSignal,
    work: (sandbox: Sandbox) => Promise<T | "wait" | "again">,
    late: (sandbox: Sandbox) => Error = waitedTooLong,
  ): Promise<T> {
    const deadline = performance.now() + this.#deps.timing.waitTimeoutMs;
    for (;;) {
      const sandbox = await this.#find(teamId, id);
      const done = await work(sandbox);
      if (done !== "wait" && done !== "again") return done;
      if (done === "wait") await this.#wait(sandbox, deadline, signal, late);
    }
  }

  async #wait(sandbox: Sandbox, deadline: number, signal: AbortSignal | undefined, late: (sandbox: Sandbox) => Error): Promise<void> {
    const timeoutMs = deadline - performance.now();
    if (timeoutMs <= 0 || !(await this.#deps.moves.settled(sandbox.id, { timeoutMs, signal }))) throw late(sandbox);
  }

  async #find(teamId: string, id: string): Promise<Sandbox> {
    const sandbox = await this.#deps.store.sandboxes.find(id);
    if (!sandbox || sandbox.teamId !== teamId) throw sandboxNotFound(id);
    if (sandbox.state === "ended") throw sandboxNotFound(id, sandbox);
    return sandbox;
  }

  async #setEnd(teamId: string, id: string, change: { readonly timeoutMs: number; readonly onlyLater: boolean }): Promise<void> {
    for (;;) {
      const sandbox = await this.#find(teamId, id);
      assertHasEnd(sandbox);
      if (await this.#moveEnd(sandbox, change)) return;
    }
  }

  /** False when it does not run any more. Throws when its time is over, which nobody has acted on yet. */
  async #moveEnd(sandbox: Sandbox, change: { readonly timeoutMs: number; readonly onlyLater: boolean }): Promise<boolean> {
    const { store, clock, limits } = this.#deps;
    const { id } = sandbox;
    const now = clock.now();
    const latest = asShown(sandbox).startedAt + limits.maxRunMs(sandbox.teamId);
    const endAt = Math.min(now + change.timeoutMs, latest);
    if (await store.sandboxes.setEnd(id, { endAt, now, onlyLater: change.onlyLater })) return true;
    // Nothing was changed: it ends later already, or it is over, or it changed its state.
    const after = await store.sandboxes.find(id);
    if (after?.state !== "running") return false;
    if (asShown(after).endAt <= now && !after.autoPause) throw sandboxNotFound(id);
    return true;
  }
}

/** Only what runs, and is not changing its state, has an end that can be moved. */
function assertHasEnd(sandbox: Sandbox): void {
  const busy = busyState(sandbox.state);
  if (busy !== undefined) throw sandboxBusy(sandbox.id, busy);
  if (sandbox.state !== "running") throw sandboxNotFound(sandbox.id);
}
