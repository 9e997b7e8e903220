import { createHash } from "node:crypto";

export type KeyPart = string | number | boolean | null | readonly KeyPart[];

/** A key of the step cache. JSON keeps different parts apart: `["a b"]` and `["a", "b"]` have different keys. */
export function keyOf(...parts: readonly KeyPart[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
