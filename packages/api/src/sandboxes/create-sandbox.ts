// The order matters: the entry first, the node second, `running` last. Whatever happens in between, the entry says
// that there may be something to clean up, and `reconcile` does it even after this process is gone.

import { randomBytes } from "node:crypto";
import { PlatformError } from "@skerry/base";
import type { EndReason, NewSandbox, Sandbox, Team } from "@skerry/store";
import { type ErrorCode, sandboxIdFrom } from "@skerry/wire";
import { publicError, sandboxBusy } from "../errors.ts";
import { createErrorFrom } from "../nodes/node-error.ts";
import type { ResolvedTemplate } from "../templates/resolve.ts";
import { accessTokenOf } from "./access-token.ts";
import { placeSandbox } from "./placement.ts";
import type { NodeHandle } from "./ports.ts";
import type { SandboxServiceDeps } from "./service.ts";

export interface CreateOptions {
  readonly team: Team;
  readonly template: ResolvedTemplate;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly envVars: Readonly<Record<string, string>>;
  readonly allowInternetAccess: boolean | undefined;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

export async function createSandbox(deps: SandboxServiceDeps, options: CreateOptions): Promise<Sandbox> {
  const node = await pickNode(deps);
  const entry = newEntry(deps, options, node);
  await deps.store.sandboxes.insert(entry);
  try {
    const sandbox = await startOnNode(deps, { entry, node, options });
    if (options.signal.aborted) throw new PlatformError<ErrorCode>("internal", "the caller went away");
    return sandbox;
  } catch (error) {
    const reason = options.signal.aborted ? "caller_gone" : "create_failed";
    const isOurs = await abandon(deps, { entry, node, reason }).catch((failure: unknown) => {
      deps.logger.warn({ err: failure, sandbox_id: entry.id }, "the entry of a failed create is left to the reconciler");
      void killOnNode(deps, node, entry.id);
      return true;
    });
    throw isOurs ? createErrorFrom(error) : sandboxBusy(entry.id);
  }
}

async function pickNode(deps: SandboxServiceDeps): Promise<NodeHandle> {
  const nodes = deps.nodes.list();
  const counts = nodes.length > 1 ? await deps.store.sandboxes.countByNode() : undefined;
  const candidates = nodes.map((node) => ({ nodeId: node.nodeId, sandboxCount: counts?.get(node.nodeId) ?? 0, node }));
  const picked = placeSandbox(candidates)?.node;
  if (picked) return picked;
  throw publicError("capacity_unavailable", "Failed to place sandbox: there is no machine to run it", {
    detailCode: "sandbox_capacity_unavailable",
  });
}

function newEntry(deps: SandboxServiceDeps, options: CreateOptions, node: NodeHandle): NewSandbox {
  const { build, alias, template } = options.template;
  return {
    id: sandboxIdFrom(randomBytes),
    teamId: options.team.id,
    templateId: template.id,
    buildId: build.id,
    alias: alias ?? null,
    nodeId: node.nodeId,
    nodeUrl: node.url,
    owner: deps.config.ownerId,
    createdAt: deps.clock.now(),
    metadata: options.metadata ?? null,
    cpuCount: build.cpuCount,
    memoryMb: build.memoryMb,
    diskSizeMb: build.diskSizeMb,
    allowInternetAccess: options.allowInternetAccess ?? null,
    autoPause: false,
    autoResume: false,
  };
}

async function startOnNode(
  deps: SandboxServiceDeps,
  work: { readonly entry: NewSandbox; readonly node: NodeHandle; readonly options: CreateOptions },
): Promise<Sandbox> {
  const { entry, node, options } = work;
  const { build } = options.template;
  const answer = await node.client.createSandbox(
    {
      spec: {
        sandboxId: entry.id,
        templateId: entry.templateId,
        buildId: entry.buildId,
        layers: [...build.layers],
        cpuCount: entry.cpuCount,
        memoryMb: entry.memoryMb,
        diskSizeMb: entry.diskSizeMb,
        envVars: { ...options.envVars },
        accessToken: accessTokenOf(deps.tokenSeed, entry.id),
        allowInternetAccess: options.allowInternetAccess ?? true,
        defaultUser: build.defaultUser,
        defaultWorkdir: build.defaultWorkdir,
        runtime: "",
      },
    },
    { timeoutMs: deps.timing.createTimeoutMs, signal: options.signal },
  );
  const startedAt = deps.clock.now();
  const sandbox = await deps.store.sandboxes.start(entry.id, {
    startedAt,
    endAt: startedAt + options.timeoutMs,
    runtime: answer.runtime,
    agentVersion: answer.agentVersion || deps.config.agentVersion,
  });
  if (!sandbox) throw sandboxBusy(entry.id);
  return sandbox;
}

/**
 * Nobody will get this sandbox. The node is asked in the background: the caller should not wait for a node that hangs.
 * False when somebody else is ending it, which is why it failed.
 */
async function abandon(
  deps: SandboxServiceDeps,
  work: { readonly entry: NewSandbox; readonly node: NodeHandle; readonly reason: EndReason },
): Promise<boolean> {
  const { entry, node, reason } = work;
  const sandbox = await deps.store.sandboxes.find(entry.id);
  if (!sandbox) return true;
  const isOurs = sandbox.state === "starting" || sandbox.state === "running";
  if (isOurs && (await deps.kills.begin(sandbox, "abandon", reason))) {
    void deps.kills.finishInBackground(sandbox);
    return true;
  }
  // That kill may have come to the node before the sandbox did, so ask once more.
  await killOnNode(deps, node, entry.id);
  return false;
}

/** Without the entry: where this fails, the node is found to hold something that has none. */
async function killOnNode(deps: SandboxServiceDeps, node: NodeHandle, sandboxId: string): Promise<void> {
  try {
    await node.client.killSandbox({ sandboxId }, { timeoutMs: deps.timing.killTimeoutMs });
  } catch (error) {
    deps.logger.warn({ err: error, sandbox_id: sandboxId, node_id: node.nodeId }, "killing a half-made sandbox is left to the reconciler");
  }
}
