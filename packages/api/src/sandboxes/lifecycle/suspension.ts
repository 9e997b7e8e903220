// An orderly shutdown of the host: every running sandbox is paused with its memory, and the next start resumes it with the time that it had
// left. Until then this process starts no sandboxes.
//
// Failure policy: a sandbox whose memory cannot be saved in time is paused without it, which takes a moment. It stays paused, so that its
// owner hears of the loss at the next resume. A sandbox that cannot be paused at all continues to run; if the host goes down, its node keeps
// its disk.

import type { Sandbox } from "@skerry/store";
import { publicError } from "../../errors.ts";
import { NodeTurns } from "../../nodes/node-queue.ts";
import type { SandboxDeps } from "../deps.ts";
import { finishPause, newImage } from "../pause-sandbox.ts";
import { NOT_SUSPENDED } from "../reconcile/settle.ts";
import { PASSING_STATES } from "./lifecycle.ts";
import { PLATFORM } from "./moves.ts";

/** Pauses that run on one node at the same time. Each writes a sandbox's memory to the disk. */
const AT_ONCE = 4;
/** The resume of a sandbox whose timeout was about to pass must not end at once. */
const LEAST_REST_MS = 10_000;
/** How long the work that remains after the deadline may take: pauses without memory, and those whose memory is being written. */
const AFTER_DEADLINE_MS = 60_000;

export interface Suspended {
  readonly paused: number;
  /** The ids of sandboxes that are paused without their memory. */
  readonly withoutMemory: readonly string[];
  /** The ids of sandboxes that could not be paused. */
  readonly stillRunning: readonly string[];
}

/** Whether this process is about to go down with its host. */
export class ShutdownGate {
  #isClosed = false;

  close(): void {
    this.#isClosed = true;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Throws once the gate is closed. */
  assertOpen(): void {
    if (!this.#isClosed) return;
    throw publicError("capacity_unavailable", "The platform is shutting down with its host; try again when it is back", {
      detailCode: "sandbox_capacity_unavailable",
    });
  }
}

/** Pauses all running sandboxes, with their memory until `withinMs` have passed. Resolves when none is left to pause. */
export async function suspendAll(deps: SandboxDeps, withinMs: number): Promise<Suspended> {
  deps.gate.close();
  const deadline = performance.now() + withinMs;
  const turns = new NodeTurns(AT_ONCE);
  const withoutMemory: string[] = [];
  const stillRunning: string[] = [];
  let paused = 0;
  const ids = await deps.store.nodes.listAllOccupying();
  deps.logger.info({ sandboxes: ids.length, within_ms: withinMs }, "suspending all sandboxes");
  await Promise.all(
    ids.map(async ({ id, nodeId }) => {
      const outcome = await turns.run(nodeId, () => suspendOne(deps, id, deadline)).catch((error: unknown) => failed(deps, id, error));
      if (outcome === "with memory") paused++;
      if (outcome === "without memory") withoutMemory.push(id);
      if (outcome === "failed") stillRunning.push(id);
    }),
  );
  const counts = { paused, without_memory: withoutMemory.length, still_running: stillRunning.length };
  deps.logger.info(counts, "all sandboxes are suspended");
  return { paused: paused + withoutMemory.length, withoutMemory, stillRunning };
}

type Outcome = "with memory" | "without memory" | "failed" | "nothing to do";

async function suspendOne(deps: SandboxDeps, id: string, deadline: number): Promise<Outcome> {
  let isLastResort = false;
  for (;;) {
    const late = deadline + AFTER_DEADLINE_MS - performance.now();
    const sandbox = await deps.store.sandboxes.find(id);
    if (!sandbox || (sandbox.state !== "running" && !PASSING_STATES.has(sandbox.state))) return "nothing to do";
    if (late <= 0) return "failed";
    if (sandbox.state !== "running") {
      await deps.moves.settled(id, { timeoutMs: late });
      continue;
    }
    const memory = !isLastResort && performance.now() < deadline;
    try {
      const outcome = await pauseOne(deps, sandbox, memory);
      if (outcome !== "again") return outcome;
    } catch (error) {
      if (!memory) throw error;
      deps.logger.warn({ err: error, sandbox_id: id }, "a sandbox cannot be suspended with its memory");
      isLastResort = true;
    }
  }
}

async function pauseOne(deps: SandboxDeps, sandbox: Sandbox, memory: boolean): Promise<Outcome | "again"> {
  const image = newImage(deps, sandbox, { kind: "pause", memory });
  const rest = Math.max((sandbox.endAt ?? 0) - deps.clock.now(), LEAST_REST_MS);
  const facts = { actor: PLATFORM, reason: "shutdown" } as const;
  const applied = await deps.moves.apply(sandbox, "pause", {
    ...facts,
    set: { imageId: image.id, ...(memory ? { resumeMs: rest, suspendedBy: deps.moves.owner } : NOT_SUSPENDED) },
    image: { kind: "begin", image },
    exact: true,
  });
  if (applied.kind !== "moved") return "again";
  const { sandbox: after } = await finishPause(deps, applied.sandbox, { ...facts, memory, requireHealthyGuest: false });
  // Memory that was taken while the agent did not answer cannot be resumed.
  if (after.imageHasMemory && !after.agentUnresponsive) return "with memory";
  await deps.store.sandboxes.forgetSuspended(after);
  return "without memory";
}

function failed(deps: SandboxDeps, id: string, error: unknown): Outcome {
  deps.logger.error({ err: error, sandbox_id: id }, "a sandbox could not be suspended; it continues to run");
  return "failed";
}
