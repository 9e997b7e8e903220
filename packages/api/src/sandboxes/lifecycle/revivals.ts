// After a shutdown of the host: resumes the sandboxes that it suspended. The run of the API process that suspended them
// does not resume them: a later run does, or another process when that one is dead.
//
// Failure policy: a sandbox that cannot be resumed now keeps its mark and is tried again with a growing back-off. Its owner can resume it at
// any time, which removes the mark.

import type { Sandbox } from "@skerry/store";
import { NodeTurns } from "../../nodes/node-queue.ts";
import { RepeatedWork } from "../../repeated-work.ts";
import type { SandboxDeps } from "../deps.ts";
import { resumeSandbox } from "../resume-sandbox.ts";
import { PLATFORM } from "./moves.ts";

/** Resumes that run on one node at the same time. Callers' own requests shall not have to wait behind hundreds of them. */
const AT_ONCE = 2;
/** Rows that one look reads. */
const ROWS = 500;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 60_000;

interface Retry {
  readonly dueAt: number;
  readonly delayMs: number;
}

export class Revivals {
  readonly #deps: SandboxDeps;
  readonly #turns = new NodeTurns(AT_ONCE);
  readonly #active = new Map<string, Promise<void>>();
  readonly #retries = new Map<string, Retry>();
  readonly #looks: RepeatedWork;
  #stopped = true;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#looks = new RepeatedWork({
      work: () => this.look(),
      pauseMs: deps.timing.reconcileMs,
      onError: (error) => deps.logger.error({ err: error }, "the search for suspended sandboxes failed"),
    });
  }

  start(): void {
    this.#stopped = false;
    this.#looks.start(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#looks.stop();
    await Promise.allSettled(this.#active.values());
  }

  /** Begins to resume what is due. Resolves when the rows are read; the resumes go on in the background. */
  async look(): Promise<void> {
    const { store, moves, nodes, gate, logger } = this.#deps;
    if (gate.isClosed) return;
    const suspended = await store.sandboxes.listSuspended(ROWS);
    for (const id of this.#retries.keys()) if (!suspended.some((sandbox) => sandbox.id === id)) this.#retries.delete(id);
    const now = performance.now();
    for (const sandbox of suspended) {
      const { id, suspendedBy, nodeId } = sandbox;
      const isDue = (this.#retries.get(id)?.dueAt ?? 0) <= now;
      if (!isDue || this.#active.has(id) || !moves.isOrphaned(suspendedBy ?? "") || !nodes.find(nodeId)) continue;
      if (!sandbox.imageHasMemory || sandbox.agentUnresponsive) {
        await store.sandboxes.forgetSuspended(sandbox);
        logger.warn({ sandbox_id: id }, "a suspended sandbox lost its memory and stays paused");
        continue;
      }
      const work = this.#turns.run(nodeId, () => this.#revive(sandbox)).finally(() => this.#active.delete(id));
      this.#active.set(id, work);
    }
  }

  async #revive(sandbox: Sandbox): Promise<void> {
    const { logger, gate } = this.#deps;
    if (this.#stopped || gate.isClosed) return;
    const { id, resumeMs } = sandbox;
    try {
      const started = await resumeSandbox(this.#deps, sandbox, { timeoutMs: resumeMs ?? 0, memory: true, actor: PLATFORM });
      if (!started) return;
      this.#retries.delete(id);
      const { memoryLost } = started;
      if (memoryLost === undefined) logger.info({ sandbox_id: id }, "a suspended sandbox runs again");
      else logger.warn({ sandbox_id: id, memory_lost_reason: memoryLost }, "a suspended sandbox runs again without its memory");
    } catch (error) {
      const delayMs = Math.min((this.#retries.get(id)?.delayMs ?? FIRST_RETRY_MS / 2) * 2, LONGEST_RETRY_MS);
      this.#retries.set(id, { delayMs, dueAt: performance.now() + delayMs });
      logger.warn({ err: error, sandbox_id: id, retry_ms: delayMs }, "a suspended sandbox could not be resumed; it will be tried again");
    }
  }
}
