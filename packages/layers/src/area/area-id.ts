import { randomBytes } from "node:crypto";
import { PlatformError } from "@skerry/base";

// Short, because the kernel takes one page of overlay options.
const FORM = /^[0-9a-f]{24}$/;

/** 24 hex digits. */
export function newAreaId(): string {
  return randomBytes(12).toString("hex");
}

export function isAreaId(text: string): boolean {
  return FORM.test(text);
}

/** Throws PlatformError("area_id_invalid"): ids become paths. */
export function assertAreaId(text: string): void {
  if (!isAreaId(text)) throw new PlatformError("area_id_invalid", `not a disk area's id: ${text.slice(0, 100)}`);
}
