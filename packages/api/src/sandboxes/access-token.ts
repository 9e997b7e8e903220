import { createHmac } from "node:crypto";
import type { Secret } from "@skerry/base";

/** The token that a sandbox's agent asks for. Derived, so that it is the same at every connect and kept nowhere. */
export function accessTokenOf(tokenSeed: Secret, sandboxId: string): string {
  return createHmac("sha256", tokenSeed.reveal()).update(`access:${sandboxId}`).digest("hex");
}
