// Brings the values of secrets to nodes that do not have them: after a restart of the node, or because a secret has another value by now, or
// was deleted.
// Failure policy: each round tries again, for as long as the sandbox runs. Until then the node uses what it has; without any of it, requests that
// need a secret fail.

import type { NodeHandle } from "../../nodes/directory.ts";
import { nodeCodeOf } from "../../nodes/node-error.ts";
import type { SandboxDeps } from "../deps.ts";

/** `held`: the versions that the node has, by sandbox. */
export async function settleSecrets(deps: SandboxDeps, node: NodeHandle, held: ReadonlyMap<string, string>): Promise<void> {
  if (held.size === 0) return;
  const { store, secrets, timing, logger } = deps;
  for (const sandbox of await store.sandboxes.listRunning([...held.keys()])) {
    try {
      if ((await secrets.versionOf(sandbox)) === held.get(sandbox.id)) continue;
      const present = await secrets.of(sandbox);
      // The rules were removed, and the node will be told, or was told after it answered.
      if (!present) continue;
      await node.client.setSandboxSecrets({ sandboxId: sandbox.id, secrets: present }, { timeoutMs: timing.optionsTimeoutMs });
      logger.info({ sandbox_id: sandbox.id, node_id: node.nodeId }, "a node got the secrets of a sandbox's rules again");
    } catch (error) {
      if (nodeCodeOf(error) === "sandbox_gone") continue;
      logger.warn({ err: error, sandbox_id: sandbox.id, node_id: node.nodeId }, "the secrets of a sandbox's rules did not reach its node");
    }
  }
}
