import { PlatformError } from "@skerry/base";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export type VolumeMount = NonNullable<SandboxRecord["volumes"]>[number];

const VOLUME_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LONGEST_PATH = 1024;
/** Mount points of the runtimes and of the agent. */
const RESERVED = ["/proc", "/sys", "/dev", "/.skerry"];

export function isVolumeId(id: string): boolean {
  return VOLUME_ID.test(id);
}

/** Throws PlatformError("invalid_argument"). The id becomes the name of a folder. */
export function assertVolumeId(id: string): void {
  if (!isVolumeId(id)) throw new PlatformError("invalid_argument", `not a volume id: ${id.slice(0, 100)}`);
}

/**
 * The mounts of a request, by their paths. Throws PlatformError("invalid_argument") for a malformed one. A mount below another one is refused:
 * its mount point would be a directory of the other volume, which other sandboxes can replace by a link while it is being mounted.
 */
export function parseVolumeMounts(mounts: readonly VolumeMount[]): readonly VolumeMount[] {
  const sorted = mounts.map(({ volumeId, path }) => ({ volumeId, path })).sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const { volumeId, path } of sorted) {
    assertVolumeId(volumeId);
    const problem = problemOf(path);
    if (problem)
      throw new PlatformError("invalid_argument", `a volume can't be mounted at ${JSON.stringify(path.slice(0, 200))}: ${problem}`);
  }
  for (const { path } of sorted) {
    const outer = sorted.filter((other) => path === other.path || path.startsWith(`${other.path}/`));
    if (outer.length > 1) throw new PlatformError("invalid_argument", `a volume can't be mounted at ${path}: another one is mounted there`);
  }
  return sorted;
}

function problemOf(path: string): string | undefined {
  if (!path.startsWith("/") || path === "/" || path.endsWith("/") || path.includes("\0"))
    return "it is not an absolute path of a directory";
  if (
    path
      .slice(1)
      .split("/")
      .some((part) => part === "" || part === "." || part === "..")
  )
    return "it has an empty part, '.' or '..'";
  if (path.length > LONGEST_PATH) return "it is too long";
  return RESERVED.some((reserved) => path === reserved || path.startsWith(`${reserved}/`)) ? "the platform needs that path" : undefined;
}

export function isSameMounts(a: readonly VolumeMount[] = [], b: readonly VolumeMount[] = []): boolean {
  return a.length === b.length && a.every((mount, index) => mount.volumeId === b[index]?.volumeId && mount.path === b[index]?.path);
}
