import { asError, errnoOf, PlatformError } from "@skerry/base";
import { newAreaId } from "./area-id.ts";
import { type DiskLimit, openDiskAreas } from "./disk-areas.privileged.ts";

export type DiskLimitSetting = DiskLimit | "auto";

export interface ChosenDiskLimit {
  readonly limit: DiskLimit;
  /** Why disks cannot be limited here; undefined when they are limited, or when no limit is wanted. */
  readonly missing?: string;
}

const SMALLEST_MB = 8;

/**
 * Finds out what can limit disks in `dir`, the directory of the areas, by creating, closing, opening and removing a small area. With "auto",
 * a host where disk files do not work has no limits. Throws PlatformError("config_invalid") when the setting is "file" and disk files do not work here.
 */
export async function chooseDiskLimit({ dir, setting }: { dir: string; setting: DiskLimitSetting }): Promise<ChosenDiskLimit> {
  if (setting === "none") return { limit: "none" };
  const missing = await tryDiskFile(dir);
  if (missing === undefined) return { limit: "file" };
  if (setting === "auto") return { limit: "none", missing };
  throw new PlatformError("config_invalid", `disks cannot be limited here: ${missing}. Fix that, or set SKERRY_DISK_LIMIT=none`);
}

async function tryDiskFile(dir: string): Promise<string | undefined> {
  const areas = openDiskAreas({ dir, trash: dir, limit: "file", ready: 0, reserveBytes: 0 });
  const id = newAreaId();
  try {
    await areas.create(id, { sizeMb: SMALLEST_MB, ownerId: 0 });
    await areas.close(id);
    await areas.open(id, { readOnly: true });
    return undefined;
  } catch (error) {
    return reasonOf(error);
  } finally {
    await areas.destroy(id);
  }
}

function reasonOf(error: unknown): string {
  const { message } = asError(error);
  if (errnoOf(error) === "ENOENT" && message.includes("loop-control")) return "there are no loop devices (/dev/loop-control)";
  if (errnoOf(error) === "ENOENT" && message.includes("mkfs.ext4")) return "mkfs.ext4 is missing (Debian package e2fsprogs)";
  return message.split("\n")[0] ?? "";
}
