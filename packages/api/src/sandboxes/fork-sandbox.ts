// Forks: several sandboxes are started from one image of the sandbox. The image is deleted when they are up, or could not be started.

import type { Build, Sandbox } from "@skerry/store";
import { presentMounts } from "../volumes/mounts.ts";
import { imageNode, newSandboxId, openNode, type Started, startNew } from "./create-sandbox.ts";
import type { Acting, SandboxDeps } from "./deps.ts";
import { type TakenImage, takeImage } from "./images/take-image.ts";
import { assertRestorable } from "./resume-sandbox.ts";

export interface ForkOptions {
  readonly by: Acting;
  readonly timeoutMs: number;
  /** The ids of the forks. */
  readonly ids: readonly string[];
  readonly signal: AbortSignal;
}

export type ForkResult = { readonly kind: "started"; readonly started: Started } | { readonly kind: "failed"; readonly error: unknown };

export function newForkIds(count: number): readonly string[] {
  return Array.from({ length: count }, newSandboxId);
}

export interface Forked {
  /** One result for each id, in the same order. */
  readonly results: readonly ForkResult[];
  /** Why the source continued without its memory; undefined when it has its memory. */
  readonly memoryLost: string | undefined;
}

/** Returns undefined when another caller changed the sandbox first. */
export async function forkSandbox(deps: SandboxDeps, sandbox: Sandbox, options: ForkOptions): Promise<Forked | undefined> {
  assertRestorable(sandbox, true);
  openNode(imageNode(deps, sandbox.nodeId), await deps.store.nodes.closed());
  const taken = await takeImage(deps, sandbox, { kind: "fork", memory: true, actor: options.by.actor });
  if (!taken) return undefined;
  try {
    const build = await deps.store.templates.findAnyBuild(sandbox.buildId);
    // A fork shares the volumes of its sandbox, without those that were deleted by force.
    const volumeMounts = await presentMounts(deps.store.volumes, sandbox.teamId, sandbox.volumeMounts);
    const source = { ...sandbox, volumeMounts };
    const results = await Promise.all(options.ids.map((id) => startFork(deps, { id, sandbox: source, taken, build, options })));
    return { results, memoryLost: taken.memoryLost };
  } finally {
    await deps.images.drop(taken.image);
  }
}

async function startFork(
  deps: SandboxDeps,
  fork: { id: string; sandbox: Sandbox; taken: TakenImage; build: Build | undefined; options: ForkOptions },
): Promise<ForkResult> {
  const { sandbox, taken, build, options } = fork;
  try {
    const node = imageNode(deps, sandbox.nodeId);
    const started = await startNew(deps, {
      by: options.by,
      // A fork inherits everything that its sandbox was created with, options included.
      entry: { ...sandbox, id: fork.id, owner: deps.moves.owner, createdAt: deps.clock.now(), timeoutMs: options.timeoutMs },
      node,
      build,
      // The variables of the source are in the memory that the fork inherits.
      envVars: {},
      imageId: taken.image.id,
      signal: options.signal,
    });
    return { kind: "started", started };
  } catch (error) {
    deps.logger.warn({ err: error, sandbox_id: fork.id, source_sandbox_id: sandbox.id }, "a fork could not be started");
    return { kind: "failed", error };
  }
}
