// Changes the options of a sandbox that exists. The order matters: first the row, which says that the node may not have them yet, then the
// node. When this process ends in between, the reconciliation brings the options of the row to the node (reconcile/left-options.ts). The
// caller gets an answer only when the node has them. After a failure the former options count, as a later change: a call that reaches the node
// late must not replace them.

import type { Sandbox } from "@skerry/store";
import { changedAfter, type SandboxOptions } from "@skerry/wire/node";
import { sandboxNotFound } from "../errors.ts";
import { changeErrorFrom, nodeCodeOf } from "../nodes/node-error.ts";
import type { SandboxDeps } from "./deps.ts";
import { optionsForNode } from "./node-options.ts";
import { waitedTooLong } from "./refusals.ts";

type Deps = Pick<SandboxDeps, "store" | "nodes" | "moves" | "limits" | "secrets" | "timing" | "clock" | "logger">;

/** Returns false when another caller changed the sandbox first. Precondition: the sandbox was running or paused. */
export async function changeOptions(deps: Deps, sandbox: Sandbox, chosen: SandboxOptions): Promise<boolean> {
  const options = changedAfter(sandbox.options, chosen);
  const { changes } = deps.store.sandboxes;
  // A start brings the options to the node.
  if (sandbox.state === "paused") return await changes.setPaused(sandbox, options, deps.clock.now());
  const { owner } = deps.moves;
  if (!(await changes.begin(sandbox, { options, owner }))) return false;
  try {
    await bringToNode(deps, sandbox, options);
  } catch (error) {
    deps.logger.warn({ err: error, sandbox_id: sandbox.id, node_id: sandbox.nodeId }, "changing the options of a sandbox failed");
    await changes.undo({ id: sandbox.id, options: changedAfter(options, sandbox.options) }, owner);
    throw changeErrorFrom(error, sandbox.id);
  }
  // A later change of the sandbox, while it was paused, may have reached the node before this one.
  if (!(await changes.end(sandbox.id, owner, deps.clock.now()))) await changes.disown(sandbox.id);
  return true;
}

export async function sendOptions(
  deps: Pick<Deps, "limits" | "nodes" | "secrets" | "timing">,
  sandbox: Sandbox,
  options: SandboxOptions,
): Promise<void> {
  const { client } = deps.nodes.get(sandbox.nodeId);
  const { teamId } = sandbox;
  const secrets = await deps.secrets.of({ teamId, options });
  await client.setSandboxOptions(
    { sandboxId: sandbox.id, options: await optionsForNode(deps, { teamId, options }), ...(secrets ? { secrets } : {}) },
    { timeoutMs: deps.timing.optionsTimeoutMs },
  );
}

/** When the sandbox is paused meanwhile, its next start has the options of the row. */
async function bringToNode(deps: Deps, sandbox: Sandbox, options: SandboxOptions): Promise<void> {
  for (let isLast = false; ; isLast = true) {
    try {
      return await sendOptions(deps, sandbox, options);
    } catch (error) {
      if (isLast || nodeCodeOf(error) !== "sandbox_gone") throw error;
    }
    if (!(await deps.moves.settled(sandbox.id, { timeoutMs: deps.timing.waitTimeoutMs }))) throw waitedTooLong(sandbox);
    const after = await deps.store.sandboxes.find(sandbox.id);
    if (after?.state === "paused") return;
    if (!after || after.state === "ended") throw sandboxNotFound(sandbox.id, after);
  }
}
