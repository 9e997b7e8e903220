import { randomUUID } from "node:crypto";
import type { Sandbox, Snapshot } from "@skerry/store";
import { publicError } from "../errors.ts";
import type { SnapshotName } from "../templates/template-name.ts";
import { newSandboxId } from "./create-sandbox.ts";
import type { SandboxDeps } from "./deps.ts";
import { takeImage } from "./images/take-image.ts";

export interface SnapshotOptions {
  readonly name: SnapshotName;
  readonly memory: boolean;
  readonly actor: string;
  /** Chosen before the snapshot when the request has an idempotency key. */
  readonly buildId?: string | undefined;
}

export interface SnapshotTaken {
  readonly snapshot: Snapshot;
  /** Why the sandbox continued without its memory; undefined when it has its memory. */
  readonly memoryLost: string | undefined;
}

/** Returns undefined when another caller changed the sandbox first. */
export async function snapshotSandbox(deps: SandboxDeps, sandbox: Sandbox, options: SnapshotOptions): Promise<SnapshotTaken | undefined> {
  const { name } = options;
  const source = await deps.store.templates.findAnyBuild(sandbox.buildId);
  if (name.alias) await assertFree(deps, sandbox.teamId, name.alias);
  const taken = await takeImage(deps, sandbox, { kind: "snapshot", memory: options.memory, actor: options.actor });
  if (!taken) return undefined;
  const { image, hasMemory, sizeBytes } = taken;
  try {
    const snapshot = await deps.store.snapshots.add({
      teamId: sandbox.teamId,
      alias: name.alias,
      tag: name.tag,
      sizeBytes,
      build: {
        id: options.buildId ?? randomUUID(),
        templateId: newSandboxId().slice(1),
        status: "ready",
        cpuCount: sandbox.cpuCount,
        memoryMb: sandbox.memoryMb,
        diskSizeMb: sandbox.diskSizeMb,
        layers: [],
        defaultUser: source?.defaultUser ?? "user",
        defaultWorkdir: source?.defaultWorkdir ?? "/home/user",
        agentVersion: sandbox.agentVersion ?? deps.config.agentVersion,
        createdAt: deps.clock.now(),
        image: { id: image.id, hasMemory, nodeId: image.nodeId, sourceSandboxId: sandbox.id },
        volumeMounts: sandbox.volumeMounts,
      },
    });
    if (snapshot === "taken") throw nameTaken(name.alias?.alias ?? "");
    return { snapshot, memoryLost: taken.memoryLost };
  } catch (error) {
    await deps.images.drop(image);
    throw error;
  }
}

/** Checks the name before the sandbox stands still in vain. The commit checks it again. */
async function assertFree(deps: SandboxDeps, teamId: string, alias: NonNullable<SnapshotName["alias"]>): Promise<void> {
  const { templates } = deps.store;
  const holder = await templates.findAlias(alias);
  if (!holder && (await templates.findTemplate(alias.alias))) throw nameTaken(alias.alias);
  if (holder && (holder.teamId !== teamId || holder.kind !== "snapshot")) throw nameTaken(alias.alias);
}

function nameTaken(alias: string) {
  return publicError("conflict", `Alias '${alias}' is already used`);
}
