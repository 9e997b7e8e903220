// Brings the options of sandboxes to their node when the process that changed them has ended, or has failed to.
// Failure policy: each round tries again, for as long as the sandbox runs.

import type { NodeHandle } from "../../nodes/directory.ts";
import { nodeCodeOf } from "../../nodes/node-error.ts";
import { sendOptions } from "../change-options.ts";
import type { SandboxDeps } from "../deps.ts";

const LIMIT = 1_000;

export async function settleOptions(deps: SandboxDeps, node: NodeHandle): Promise<void> {
  const { store, leftOvers, timing, moves, logger } = deps;
  const { changes } = store.sandboxes;
  for (const entry of await changes.listUnsettled(node.nodeId, LIMIT)) {
    const longestMs = 2 * (timing.optionsTimeoutMs + timing.waitTimeoutMs);
    if (!leftOvers.isLeft({ key: `${entry.id}/options`, owner: entry.owner, longestMs })) continue;
    // In a passing state the node is at work. One that starts the sandbox has the options of the row already.
    if (entry.state !== "running" && entry.state !== "paused" && entry.state !== "ended") continue;
    const sandbox = await changes.takeOver(entry, moves.owner);
    if (!sandbox) continue;
    const facts = { sandbox_id: sandbox.id, node_id: node.nodeId };
    try {
      if (sandbox.state === "running") await sendOptions(deps, sandbox, sandbox.options);
      await changes.end(sandbox.id, moves.owner, deps.clock.now());
      if (sandbox.state === "running") logger.warn(facts, "a change of a sandbox's options, which was cut off, was settled");
    } catch (error) {
      await changes.undo(sandbox, moves.owner);
      // Another round settles what has become of the sandbox.
      if (nodeCodeOf(error) !== "sandbox_gone") logger.warn({ ...facts, err: error }, "the options of a sandbox did not reach its node");
    }
  }
}
