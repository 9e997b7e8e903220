// The operations of teams on their sandboxes. A call finds only the sandboxes of its team. A call that finds a sandbox in a passing state
// waits for the end of that state, whichever process works on it, and looks again. `ApiTiming` limits the wait.

import { setTimeout as sleep } from "node:timers/promises";
import { PlatformError } from "@skerry/base";
import type { Sandbox, Team } from "@skerry/store";
import { networkLimitsOf, type SandboxOptions } from "@skerry/wire/node";
import pLimit from "p-limit";
import { sandboxBusy, sandboxNotFound } from "../errors.ts";
import { assertStanding } from "../teams/standing.ts";
import type { TemplateReference } from "../templates/reference.ts";
import type { SnapshotName } from "../templates/template-name.ts";
import { type ResolvedTemplate, notFound as templateNotFound } from "../templates/template-service.ts";
import { changeOptions } from "./change-options.ts";
import { type CreateRequest, createSandbox, type Started } from "./create-sandbox.ts";
import type { Acting, SandboxDeps } from "./deps.ts";
import { type Forked, forkSandbox } from "./fork-sandbox.ts";
import { next, PASSING_STATES } from "./lifecycle/lifecycle.ts";
import { PLATFORM, TRAFFIC } from "./lifecycle/moves.ts";
import { type Suspended, suspendAll } from "./lifecycle/suspension.ts";
import { listAllRunning, listSandboxes, type RunningQuery, type SandboxList, type SandboxQuery } from "./list-sandboxes.ts";
import { finishPause, newImage } from "./pause-sandbox.ts";
import { NOT_SUSPENDED } from "./reconcile/settle.ts";
import { alreadyPaused, busyState, cannotFork, cannotPauseNow, cannotSnapshot, conflict, waitedTooLong } from "./refusals.ts";
import { resumeSandbox } from "./resume-sandbox.ts";
import { asShown, type ShownSandbox } from "./shown-sandbox.ts";
import { type SnapshotTaken, snapshotSandbox } from "./snapshot-sandbox.ts";

/** Shortest extension by a refresh. */
const MIN_REFRESH_MS = 15_000;
/** Shortest timeout of a sandbox that traffic resumes. */
const MIN_WAKE_MS = 300_000;
/** How many kills of `killRunning` run at once. */
const KILLS_AT_ONCE = 16;

/** How often a change of options looks whether another one has ended. */
const CHANGE_POLL_MS = 50;

/** A create request, with the template as the caller named it. */
export interface NewSandboxRequest extends Omit<CreateRequest, "template"> {
  readonly team: Team;
  readonly template: TemplateReference;
  /** Only snapshots of sandboxes with this metadata may be started. Undefined: all that the team may start. */
  readonly startsFrom: Readonly<Record<string, string>> | undefined;
}

export interface Connected extends Started {
  readonly sandbox: ShownSandbox;
  /** Whether the sandbox was paused before. */
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
    if (request.startsFrom && !(await this.#comesFrom(template, request.startsFrom))) throw templateNotFound(request.template);
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
   * The result of a create whose process died: the sandbox, if it ever ran. An unfinished create is killed, so that a repeated request starts
   * anew.
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

  /** Throws for a sandbox without this metadata what is thrown for one that does not exist. */
  async assertMetadata(teamId: string, id: string, metadata: Readonly<Record<string, string>>): Promise<void> {
    const sandbox = await this.#deps.store.sandboxes.find(id);
    if (sandbox?.teamId !== teamId || !hasMetadata(sandbox, metadata)) throw sandboxNotFound(id);
  }

  /** Whether a snapshot's sandbox has this metadata. True for templates, which have no sandbox. */
  async #comesFrom({ template, build }: ResolvedTemplate, metadata: Readonly<Record<string, string>>): Promise<boolean> {
    if (template.kind !== "snapshot") return true;
    const source = await this.#deps.store.sandboxes.find(build.image?.sourceSandboxId ?? "");
    return source !== undefined && hasMetadata(source, metadata);
  }

  async get(teamId: string, id: string): Promise<ShownSandbox> {
    const sandbox = await this.#find(teamId, id);
    if (sandbox.state === "starting" || sandbox.state === "killing") throw sandboxNotFound(id);
    return asShown(sandbox);
  }

  /** Resumes a sandbox if it is paused. Extends its timeout to at least `timeoutMs` from now, and never shortens it. */
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

  /** The resume of older clients: refused when the sandbox runs already. */
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

  /** Resolves when the sandbox is paused, with the reason when its memory was lost. Callers at the same time wait for one pause. */
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
        // The pause that this call waited for has succeeded, whatever happened to the sandbox since.
        if (joinedAt !== undefined && (await store.sandboxes.findEvent(id, joinedAt + 1)) === "paused") return { memoryLost: undefined };
        const image = newImage(this.#deps, sandbox, { kind: "pause", memory: options.memory });
        const facts = {
          actor: by.actor,
          reason: "request",
          set: { imageId: image.id, ...NOT_SUSPENDED },
          image: { kind: "begin", image },
        } as const;
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
   * Resumes a sandbox because of traffic. Resolves when its state has changed. The sandbox gets the timeout of its create, but at least five
   * minutes.
   */
  async wake(id: string, signal: AbortSignal): Promise<void> {
    const { store, clock, limits } = this.#deps;
    const found = await store.sandboxes.find(id);
    if (!found) throw sandboxNotFound(id);
    const team = await store.identity.findTeam(found.teamId);
    if (team) assertStanding(team, false);
    const timeoutMs = Math.min(Math.max(found.timeoutMs, MIN_WAKE_MS), await limits.maxRunMs(found.teamId));
    await this.#settling(found.teamId, id, signal, async (sandbox) => {
      if (sandbox.state === "paused") {
        if (!sandbox.autoResume || sandbox.imageHasMemory !== true) throw sandboxNotFound(id);
        return await this.#resume(sandbox, { timeoutMs, memory: true, signal, actor: TRAFFIC });
      }
      if (PASSING_STATES.has(sandbox.state)) return "wait";
      const now = clock.now();
      const isDue = asShown(sandbox).endAt <= now && sandbox.autoPause && sandbox.autoResume;
      // The timeout has passed and the pause has not begun: extend the timeout instead of a pause and a resume.
      if (isDue) await store.sandboxes.setEnd(id, { endAt: now + timeoutMs, now, onlyLater: true });
      return undefined;
    });
  }

  /** Resolves when the sandbox has the options, also on its node if it runs. */
  async changeOptions(
    teamId: string,
    id: string,
    { change, signal }: { readonly change: (options: SandboxOptions) => SandboxOptions; readonly signal: AbortSignal },
  ): Promise<void> {
    const deadline = performance.now() + this.#deps.timing.waitTimeoutMs;
    await this.#settling(teamId, id, signal, async (sandbox) => {
      if (sandbox.state === "starting" || sandbox.state === "killing") throw sandboxNotFound(id);
      if (sandbox.state !== "running" && sandbox.state !== "paused") return "wait";
      if (await changeOptions(this.#deps, sandbox, change(sandbox.options))) return undefined;
      // Another change is under way, perhaps in another process.
      if (performance.now() >= deadline || signal.aborted) throw sandboxBusy(id, "changed");
      await sleep(CHANGE_POLL_MS);
      return "again";
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
    await this.#deps.limits.assertForks(by.teamId, options.ids.length);
    return await this.#settling(by.teamId, id, options.signal, async (sandbox) => {
      if (sandbox.state !== "running" && sandbox.state !== "paused") throw cannotFork(sandbox);
      return (await forkSandbox(this.#deps, sandbox, { ...options, by })) ?? "again";
    });
  }

  /** Sets the end to `timeoutMs` from now, earlier or later than before. */
  async setTimeout(teamId: string, id: string, timeoutMs: number): Promise<void> {
    await this.#setEnd(teamId, id, { timeoutMs, onlyLater: false });
  }

  async refresh(teamId: string, id: string, durationMs: number): Promise<void> {
    await this.#setEnd(teamId, id, { timeoutMs: Math.max(durationMs, MIN_REFRESH_MS), onlyLater: true });
  }

  /**
   * Resolves when nothing of the sandbox is left. Callers at the same time wait for one kill. A caller whose request arrived before the end
   * of the kill counts among them, however long the request took to get here.
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

  /** Kills every sandbox of the team that runs now or is being started. Paused ones stay. */
  async killRunning(by: Acting, arrivedAt: number): Promise<{ readonly killed: number; readonly failed: number }> {
    const ids = await this.#deps.store.nodes.listOccupying(by.teamId);
    const turns = pLimit(KILLS_AT_ONCE);
    const kills = await Promise.allSettled(ids.map((id) => turns(() => this.kill(by, id, arrivedAt))));
    const isGone = (error: unknown) => error instanceof PlatformError && error.code === "not_found";
    const failed = kills.filter((kill) => kill.status === "rejected" && !isGone(kill.reason)).length;
    return { killed: kills.filter(({ status }) => status === "fulfilled").length, failed };
  }

  /** Pauses every sandbox of every team, because the host is about to go down. This process starts none from now on. */
  async suspendAll(withinMs: number): Promise<Suspended> {
    return await suspendAll(this.#deps, withinMs);
  }

  /** Throws when a sandbox of the team may not use as much of the network. */
  async assertNetwork(teamId: string, options: SandboxOptions): Promise<void> {
    await this.#deps.limits.assertNetwork(teamId, networkLimitsOf(options));
  }

  /** Throws when no sandbox of the team may run for so long. */
  async assertTimeout(teamId: string, timeoutSeconds: number): Promise<void> {
    await this.#deps.limits.assertTimeout(teamId, timeoutSeconds);
  }

  async #resume(sandbox: Sandbox, options: WakeOptions & { actor: string; autoPause?: boolean | undefined }): Promise<Connected | "again"> {
    const started = await resumeSandbox(this.#deps, sandbox, options);
    return started ? { ...started, sandbox: asShown(started.sandbox), resumed: true } : "again";
  }

  /** Runs `work` with the present state of the sandbox until it has a result. `wait`: after the running operation. `again`: at once. */
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

  /** Returns false when the sandbox does not run any more. Throws when its timeout has passed and it is about to be killed. */
  async #moveEnd(sandbox: Sandbox, change: { readonly timeoutMs: number; readonly onlyLater: boolean }): Promise<boolean> {
    const { store, clock, limits } = this.#deps;
    const { id } = sandbox;
    const now = clock.now();
    const latest = asShown(sandbox).startedAt + (await limits.maxRunMs(sandbox.teamId));
    const endAt = Math.min(now + change.timeoutMs, latest);
    if (await store.sandboxes.setEnd(id, { endAt, now, onlyLater: change.onlyLater })) return true;
    // Nothing changed: the sandbox already ends later, its timeout has passed, or it has another state.
    const after = await store.sandboxes.find(id);
    if (after?.state !== "running") return false;
    if (asShown(after).endAt <= now && !after.autoPause) throw sandboxNotFound(id);
    return true;
  }
}

/** Throws unless the sandbox runs and is not changing its state: only then its end can be moved. */
function assertHasEnd(sandbox: Sandbox): void {
  const busy = busyState(sandbox.state);
  if (busy !== undefined) throw sandboxBusy(sandbox.id, busy);
  if (sandbox.state !== "running") throw sandboxNotFound(sandbox.id);
}

function hasMetadata(sandbox: Sandbox, metadata: Readonly<Record<string, string>>): boolean {
  return Object.entries(metadata).every(
    ([name, value]) => Object.hasOwn(sandbox.metadata ?? {}, name) && sandbox.metadata?.[name] === value,
  );
}
