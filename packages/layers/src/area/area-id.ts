import { randomBytes } from "node:crypto";
import { PlatformError } from "@skerry/base";

/** 24 hex digits: short, because the kernel takes one page of overlay options. */
export type AreaId = string & { readonly __brand: "AreaId" };

const FORM = /^[0-9a-f]{24}$/;

export function newAreaId(): AreaId {
  return randomBytes(12).toString("hex") as AreaId;
}

export function parseAreaId(text: string): AreaId {
  if (!FORM.test(text)) throw new PlatformError("area_id_invalid", `not a disk area's id: ${text.slice(0, 100)}`);
  return text as AreaId;
}

/** The areas that have something in a folder, by the names of its entries. */
export function areaIdsOf(names: readonly string[]): AreaId[] {
  const ids = names.map((name) => name.replace(/\.img$/, "")).filter((name) => FORM.test(name));
  return [...new Set(ids)] as AreaId[];
}
