import type { Clock, Logger, Secret } from "@skerry/base";
import type { Sandbox, Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import { invalid, sandboxBusy, sandboxNotFound } from "../errors.ts";
import { type CreateOptions, createSandbox } from "./create-sandbox.ts";
import type { SandboxKills } from "./kills.ts";
import type { NodeDirectory } from "./ports.ts";

const MIN_REFRESH_MS = 15_000;

export interface SandboxServiceDeps {
  readonly config: Pick<ApiConfig, "ownerId" | "agentVersion" | "maxTimeoutHours">;
  readonly timing: ApiTiming;
  readonly store: Store;
  readonly nodes: NodeDirectory;
  readonly kills: SandboxKills;
  readonly tokenSeed: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A running sandbox; `startedAt` and `endAt` are there. */
export type RunningSandbox = Sandbox & { readonly startedAt: number; readonly endAt: number };

/** What teams do with sandboxes. Each call sees only the team's own. */
export class SandboxService {
  readonly #deps: SandboxServiceDeps;
  constructor(deps: SandboxServiceDeps) {
    this.#deps = deps;
  }

  async create(options: CreateOptions): Promise<RunningSandbox> {
    return asRunning(await createSandbox(this.#deps, options));
  }

  async get(teamId: string, id: string): Promise<RunningSandbox> {
    const sandbox = await this.#find(teamId, id);
    if (sandbox.state !== "running") throw sandboxNotFound(id);
    return asRunning(sandbox);
  }

  /** Makes sure that it runs for at least `timeoutMs` from now; never shortens. */
  async connect(teamId: string, id: string, timeoutMs: number): Promise<RunningSandbox> {
    await this.#setEnd(teamId, id, { timeoutMs, onlyLater: true });
    return await this.get(teamId, id);
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
  async kill(teamId: string, id: string, arrivedAt: number): Promise<void> {
    const { store, kills } = this.#deps;
    for (;;) {
      const sandbox = await store.sandboxes.find(id);
      if (!sandbox || sandbox.teamId !== teamId) throw sandboxNotFound(id);
      if (sandbox.state === "ended") {
        if (sandbox.endReason === "request" && (sandbox.endedAt ?? 0) > arrivedAt) return;
        throw sandboxNotFound(id);
      }
      if (await kills.begin(sandbox, "kill", "request")) return await kills.finish(sandbox);
    }
  }

  /** Refuses a time to live that no sandbox may have. */
  assertTimeout(timeoutSeconds: number): void {
    const { maxTimeoutHours } = this.#deps.config;
    if (timeoutSeconds > maxTimeoutHours * 3600) throw invalid(`Timeout cannot be greater than ${maxTimeoutHours} hours`);
  }

  async #find(teamId: string, id: string): Promise<Sandbox> {
    const sandbox = await this.#deps.store.sandboxes.find(id);
    if (!sandbox || sandbox.teamId !== teamId) throw sandboxNotFound(id);
    return sandbox;
  }

  async #setEnd(teamId: string, id: string, change: { readonly timeoutMs: number; readonly onlyLater: boolean }): Promise<void> {
    const sandbox = await this.#find(teamId, id);
    if (sandbox.state === "killing") throw sandboxBusy(id);
    if (sandbox.state !== "running") throw sandboxNotFound(id);
    const now = this.#deps.clock.now();
    const latest = asRunning(sandbox).startedAt + this.#deps.config.maxTimeoutHours * 3_600_000;
    const endAt = Math.min(now + change.timeoutMs, latest);
    if (await this.#deps.store.sandboxes.setEnd(id, { endAt, now, onlyLater: change.onlyLater })) return;
    // Nothing was changed: it ends later already, or it is over.
    const after = await this.#find(teamId, id);
    if (after.state === "killing") throw sandboxBusy(id);
    if (after.state !== "running" || asRunning(after).endAt <= now) throw sandboxNotFound(id);
  }
}

function asRunning(sandbox: Sandbox): RunningSandbox {
  return sandbox as RunningSandbox;
}
