// Makes entries and nodes agree again after something was cut off in the middle.
// Failure policy: a node that does not answer proves nothing; its sandboxes stay as they are.

import type { Clock, Logger } from "@skerry/base";
import type { SandboxEntry, SandboxRepository } from "@skerry/store";
import type { ApiTiming } from "../config.ts";
import type { SandboxKills } from "./kills.ts";
import { next } from "./lifecycle.ts";
import type { NodeDirectory, NodeHandle } from "./ports.ts";

const SCAN_LIMIT = 10_000;

export interface ReconcileDeps {
  readonly sandboxes: SandboxRepository;
  readonly nodes: NodeDirectory;
  readonly kills: SandboxKills;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: ApiTiming;
  readonly ownerId: string;
  /** When this process began: what it owns from before is left over. */
  readonly startedAt: number;
}

export async function reconcile(deps: ReconcileDeps): Promise<void> {
  await abandonLeftOvers(deps);
  await Promise.all(deps.nodes.list().map((node) => reconcileNode(deps, node)));
  await deps.kills.retryUnsettled(deps.timing.killTimeoutMs);
  await deps.sandboxes.forgetEnded(deps.clock.now() - deps.timing.keepEndedMs);
}

/** Creates that nobody will finish: ours from before this process, and anybody's that should have failed long ago. */
async function abandonLeftOvers(deps: ReconcileDeps): Promise<void> {
  const now = deps.clock.now();
  const starting = await deps.sandboxes.listUnsettled("starting", now, SCAN_LIMIT);
  const longestMs = deps.timing.createTimeoutMs * 2;
  const left = starting.filter(
    (sandbox) => (sandbox.owner === deps.ownerId && sandbox.createdAt < deps.startedAt) || now - sandbox.createdAt > longestMs,
  );
  await Promise.all(
    left.map(async (sandbox) => {
      if (await deps.kills.begin(sandbox, "abandon", "abandoned")) await deps.kills.finishInBackground(sandbox);
    }),
  );
}

async function reconcileNode(deps: ReconcileDeps, node: NodeHandle): Promise<void> {
  // Entries first: whatever is running in them was on the node before the node is asked.
  const running = await deps.sandboxes.listRunningOnNode(node.nodeId);
  const held = await askNode(deps, node);
  if (!held) return;
  const lost = running.filter((sandbox) => !held.has(sandbox.id));
  for (const sandbox of lost) {
    const move = next(sandbox.state, "gone");
    if (move.kind !== "move") continue;
    const change = { from: sandbox.state, to: move.to, now: deps.clock.now(), endReason: "node_lost" } as const;
    if (await deps.sandboxes.transition(sandbox.id, change)) {
      deps.logger.warn({ sandbox_id: sandbox.id, node_id: node.nodeId }, "a sandbox is no longer on its node");
    }
  }
  // Its entry is no longer of use to anybody, also where the node cannot give it back for now.
  const exited = running.filter((sandbox) => held.get(sandbox.id) === "killing");
  // The node first here: an entry is written before its node hears of it, so what has none now never had one, or has ended.
  const live = await deps.sandboxes.filterLive([...held.keys()]);
  const orphans = [...held.keys()].filter((id) => !live.has(id));
  await Promise.all([...exited.map((sandbox) => endExited(deps, sandbox)), ...orphans.map((id) => killOrphan(deps, node, id))]);
}

async function endExited(deps: ReconcileDeps, sandbox: SandboxEntry): Promise<void> {
  if (await deps.kills.begin(sandbox, "exit", "exited")) await deps.kills.finishInBackground(sandbox);
}

/** The sandboxes that a node holds, and their states there. */
async function askNode(deps: ReconcileDeps, node: NodeHandle): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const answer = await node.client.listSandboxes({}, { timeoutMs: deps.timing.listTimeoutMs });
    return new Map(answer.sandboxes.map((sandbox) => [sandbox.sandboxId, sandbox.state]));
  } catch (error) {
    deps.logger.warn({ err: error, node_id: node.nodeId }, "a node does not answer");
    return undefined;
  }
}

async function killOrphan(deps: ReconcileDeps, node: NodeHandle, sandboxId: string): Promise<void> {
  try {
    await node.client.killSandbox({ sandboxId }, { timeoutMs: deps.timing.killTimeoutMs });
    deps.logger.warn({ sandbox_id: sandboxId, node_id: node.nodeId }, "a sandbox without an entry was killed");
  } catch (error) {
    deps.logger.warn({ err: error, sandbox_id: sandboxId, node_id: node.nodeId }, "killing a sandbox without an entry failed");
  }
}
