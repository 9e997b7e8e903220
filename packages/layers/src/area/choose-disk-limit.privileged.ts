import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { asError, errnoOf, type Logger, PlatformError } from "@skerry/base";
import { newAreaId } from "./area-id.ts";
import { type DiskLimit, openDiskAreas } from "./disk-areas.privileged.ts";

export type DiskLimitSetting = DiskLimit | "auto";

export interface ChosenDiskLimit {
  readonly limit: DiskLimit;
  /** Why nothing can be limited here; undefined when it can, or when nobody wants it. */
  readonly missing?: string;
}

const SMALLEST_MB = 8;

/**
 * What limits disks in `dir`, found by trying. With "auto", a machine that can't is used without limits.
 * Throws PlatformError("config_invalid") when "image" is asked for and can't be.
 */
export async function chooseDiskLimit(options: { dir: string; setting: DiskLimitSetting; logger: Logger }): Promise<ChosenDiskLimit> {
  const { dir, setting, logger } = options;
  if (setting === "none") return { limit: "none" };
  const missing = await tryImage(dir, logger);
  if (missing === undefined) return { limit: "image" };
  if (setting === "auto") return { limit: "none", missing };
  throw new PlatformError("config_invalid", `disks can't be limited here: ${missing}; mend that, or set SKERRY_DISK_LIMIT=none`);
}

/** Makes, mounts and removes a small area. Answers why that fails. */
async function tryImage(dir: string, logger: Logger): Promise<string | undefined> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const own = mkdtempSync(join(realpathSync(dir), ".try-"));
  try {
    const areas = openDiskAreas({ dir: own, trash: own, limit: "image", ready: 0, reserveBytes: 0, logger });
    try {
      const { id } = await areas.create(newAreaId(), { sizeMb: SMALLEST_MB, ownerId: 0 });
      await areas.close(id);
      await areas.open(id, { readOnly: true });
      return undefined;
    } finally {
      for (const id of areas.list()) await areas.destroy(id);
    }
  } catch (error) {
    return reasonOf(error);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

function reasonOf(error: unknown): string {
  const { message } = asError(error);
  if (errnoOf(error) === "ENOENT" && message.includes("loop-control")) return "there are no loop devices (/dev/loop-control)";
  if (message.includes("mkfs.ext4") && message.includes("ENOENT")) return "mkfs.ext4 is missing (Debian package e2fsprogs)";
  return message.split("\n")[0] ?? "";
}
