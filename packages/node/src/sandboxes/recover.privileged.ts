// After a start: what a former daemon left. Sandboxes that still run and answer are adopted; everything else of this
// instance that has no living owner is given back: half-made and half-killed sandboxes, runtime states, cgroups, mounts.

import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { asError, type Logger } from "@skerry/base";
import { unmountRootFilesystem } from "@skerry/layers";
import { destroyCgroup, destroySlot, listCgroups, listSlots } from "@skerry/runtime";
import type { NodePaths } from "../paths.ts";
import { isAgentHealthy } from "./agent-client.ts";
import { type HostDeps, release } from "./host.privileged.ts";
import { readJournal, type SandboxRecord } from "./journal.privileged.ts";
import { isSameProcess } from "./process-identity.ts";

const HEALTH_TIMEOUT_MS = 5_000;

export interface Remains {
  readonly sandboxes: number;
  readonly slots: number;
  readonly cgroups: number;
  readonly mounts: number;
}

export function makeNodeFolders(paths: NodePaths, dir: string): void {
  for (const path of [dir, paths.sandboxes, paths.trash]) {
    mkdirSync(path, { recursive: true });
    // Others may pass through (a runc sandbox's own root has to) but not look around.
    chmodSync(path, 0o711);
  }
}

/** Which recorded sandboxes are still alive; the others are released here. */
export async function adoptSandboxes(deps: HostDeps, logger: Logger): Promise<SandboxRecord[]> {
  const entries = readJournal(deps.paths);
  const adopted = await Promise.all(
    entries.map(async ({ sandboxId, record }) => {
      if (
        record?.state === "running" &&
        isSameProcess(record.process) &&
        (await isAgentHealthy(record.slot.addresses.guest, HEALTH_TIMEOUT_MS))
      ) {
        logger.info({ sandbox_id: sandboxId, runtime: record.runtime }, "sandbox adopted");
        return record;
      }
      logger.info({ sandbox_id: sandboxId, state: record?.state ?? "unrecorded" }, "remains of a sandbox released");
      await release(deps, sandboxId, record?.runtime);
      return undefined;
    }),
  );
  return adopted.filter((record) => record !== undefined);
}

/** Removes everything of the instance that none of `keep` holds. Counts what it found. */
export async function removeRemains(deps: HostDeps, keep: readonly SandboxRecord[], logger: Logger): Promise<Remains> {
  const { config, paths, names } = deps;
  const kept = new Set(keep.map((record) => record.sandboxId));
  const keptSlots = new Set(keep.map((record) => record.slot.number));
  let sandboxes = 0;
  for (const runtime of config.runtimes) {
    for (const id of await runtime.list()) {
      if (kept.has(id)) continue;
      sandboxes += 1;
      await release(deps, id, runtime.name);
    }
  }
  const cgroups = listCgroups(`/skerry-${config.instance}`).filter((id) => !kept.has(id));
  for (const id of cgroups) await destroyCgroup(`/skerry-${config.instance}/${id}`);
  const keptDirs = keep.map((record) => `${paths.sandbox(record.sandboxId).dir}/`);
  const mounts = [...mountsBelow(paths.sandboxes), ...mountsBelow(paths.trash)].filter(
    (path) => !keptDirs.some((dir) => path.startsWith(dir)),
  );
  for (const path of mounts) unmountRootFilesystem(path);
  const slots = listSlots({ names, usernsDir: paths.userns }).filter((number) => !keptSlots.has(number));
  for (const number of slots) await destroySlot({ number, names, usernsDir: paths.userns });
  const remains = { sandboxes, slots: slots.length, cgroups: cgroups.length, mounts: mounts.length };
  logger.info({ ...remains, kept: kept.size }, "remains removed");
  return remains;
}

/** Deletes files of ended sandboxes. A file system error is logged and the rest goes on; what stays is tried at the next start. */
export async function emptyTrash(paths: NodePaths, logger: Logger): Promise<void> {
  for (const name of readdirSync(paths.trash)) {
    try {
      await rm(join(paths.trash, name), { recursive: true, force: true });
    } catch (error) {
      logger.warn({ name, err: asError(error) }, "files of an ended sandbox could not be deleted");
    }
  }
}

function mountsBelow(dir: string): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => (line.split(" ")[1] ?? "").replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((path) => path.startsWith(`${dir}/`));
}
