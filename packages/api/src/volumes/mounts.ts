// The mounts of new sandboxes: volumes by name, each at a path. A sandbox of a snapshot has the volumes of the snapshot's sandbox, unless its
// create request names others.

import type { VolumeMount, VolumeRepository } from "@skerry/store";
import { invalid } from "../errors.ts";

/** A mount as a create request has it. */
export interface MountRequest {
  readonly name: string;
  readonly path: string;
}

const MAX_MOUNTS = 32;
const MAX_PATH_BYTES = 1024;
/** What the runtime and the platform mount themselves. */
const RESERVED = ["/proc", "/sys", "/dev", "/.skerry"];

/** Finds the volumes of a create request. Throws one error that names every problem. */
export async function resolveMounts(
  volumes: VolumeRepository,
  teamId: string,
  requests: readonly MountRequest[],
): Promise<readonly (VolumeMount & { readonly nodeId: string })[]> {
  if (requests.length === 0) return [];
  if (requests.length > MAX_MOUNTS) throw invalidMounts([`a sandbox can mount at most ${MAX_MOUNTS} volumes`]);
  const named = await volumes.findNamed(teamId, [...new Set(requests.map(({ name }) => name))]);
  const byName = new Map(named.map((volume) => [volume.name, volume]));
  const problems: string[] = [];
  const mounts: (VolumeMount & { readonly nodeId: string })[] = [];
  for (const { name, path: given } of requests) {
    const volume = byName.get(name);
    if (!volume) problems.push(`volume '${name}' not found`);
    const path = given.replace(/\/+$/, "");
    const problem = pathProblem(given, mounts);
    if (problem !== undefined) problems.push(problem);
    if (volume && problem === undefined) mounts.push({ volumeId: volume.id, name, path, nodeId: volume.nodeId });
  }
  if (problems.length > 0) throw invalidMounts(problems);
  return mounts;
}

/** The mounts of a snapshot, for a new sandbox of its team. Throws for volumes that were deleted. */
export async function inheritMounts(
  volumes: VolumeRepository,
  teamId: string,
  mounts: readonly VolumeMount[],
): Promise<readonly VolumeMount[]> {
  const ready = await volumes.filterReady(
    teamId,
    mounts.map(({ volumeId }) => volumeId),
  );
  const missing = mounts.filter(({ volumeId }) => !ready.has(volumeId));
  if (missing.length > 0) {
    throw invalidMounts(missing.map(({ name }) => `volume '${name}' not found: the snapshot's volume was deleted; give volumeMounts`));
  }
  return mounts;
}

/** Those of the mounts whose volumes still exist. */
export async function presentMounts(
  volumes: VolumeRepository,
  teamId: string,
  mounts: readonly VolumeMount[],
): Promise<readonly VolumeMount[]> {
  if (mounts.length === 0) return [];
  const ready = await volumes.filterReady(
    teamId,
    mounts.map(({ volumeId }) => volumeId),
  );
  return mounts.filter(({ volumeId }) => ready.has(volumeId));
}

export function invalidMounts(problems: readonly string[]): Error {
  return invalid(`invalid mounts:${problems.map((problem) => `\n\t- ${problem}`).join("")}`);
}

function pathProblem(given: string, mounts: readonly { readonly path: string }[]): string | undefined {
  if (given === "") return "path cannot be empty";
  if (!given.startsWith("/")) return "path must be absolute";
  const parts = given.split("/");
  if (parts.includes(".") || parts.includes("..")) return "path must not contain any '.' or '..' components";
  const path = given.replace(/\/+$/, "");
  if (path === "" || path.includes("//") || RESERVED.some((taken) => isSameOrBelow(path, taken))) {
    return `path '${given}' cannot be a mount`;
  }
  if (path.includes("\0") || !path.isWellFormed() || Buffer.byteLength(path) > MAX_PATH_BYTES) return "path is too long or not a text";
  if (mounts.some((mount) => mount.path === path)) return `path '${path}' is already used`;
  // A mount inside of a volume would depend on what is in the volume, which other sandboxes change.
  const around = mounts.find((mount) => isSameOrBelow(path, mount.path) || isSameOrBelow(mount.path, path));
  return around && `path '${path}' is inside or around of another mount, '${around.path}'`;
}

function isSameOrBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
