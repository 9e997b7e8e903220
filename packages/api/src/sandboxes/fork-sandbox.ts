// Forks: one image of the sandbox, from which several are started, each an own sandbox from then on. The image goes when
// they are up, or could not be.

import type { Build, Sandbox } from "@skerry/store";
import { imageNode, newSandboxId, type Started, startNew } from "./create-sandbox.ts";
import type { Acting, SandboxDeps } from "./deps.ts";
import { type TakenImage, takeImage } from "./images/take-image.ts";
import { assertRestorable } from "./resume-sandbox.ts";

export interface ForkOptions {
  readonly by: Acting;
  readonly timeoutMs: number;
  /** One for each fork. */
  readonly ids: readonly string[];
  readonly signal: AbortSignal;
}

export type ForkResult = { readonly kind: "started"; readonly started: Started } | { readonly kind: "failed"; readonly error: unknown };

export function newForkIds(count: number): readonly string[] {
  return Array.from({ length: count }, newSandboxId);
}

export interface Forked {
  /** One for each id, in their order. */
  readonly results: readonly ForkResult[];
  /** Why the sandbox that was forked went on without its memory; undefined when it has it. */
  readonly memoryLost: string | undefined;
}

/** Undefined when somebody else changed the sandbox first. */
export async function forkSandbox(deps: SandboxDeps, sandbox: Sandbox, options: ForkOptions): Promise<Forked | undefined> {
  assertRestorable(sandbox, true);
  const taken = await takeImage(deps, sandbox, { kind: "fork", memory: true, actor: options.by.actor });
  if (!taken) return undefined;
  try {
    const build = await deps.store.templates.findAnyBuild(sandbox.buildId);
    const results = await Promise.all(options.ids.map((id) => startFork(deps, { id, sandbox, taken, build, options })));
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
      // What it was given is in the memory that it inherits.
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
