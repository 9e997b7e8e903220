import { createHmac } from "node:crypto";
import type { Secret } from "@skerry/base";

/** The token that the agent of a sandbox requires. It is derived, so every connect returns the same token and none is stored. */
export function accessTokenOf(tokenSeed: Secret, sandboxId: string): string {
  return createHmac("sha256", tokenSeed.reveal()).update(`access:${sandboxId}`).digest("hex");
}
