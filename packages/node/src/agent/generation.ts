import { randomBytes } from "node:crypto";

/**
 * Names one line of a sandbox's life that no other sandbox has. It is new for each sandbox that is created, and for one that goes on
 * after its memory has become an image of others; its agent then lets the guest know.
 */
export function newGeneration(): string {
  return randomBytes(16).toString("hex");
}
