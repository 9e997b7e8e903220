import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.ts";

/** Compares two texts through their digests, so that the time it takes reveals neither content nor length. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Whether a header such as `Authorization` is `Bearer <secret>`. */
export function isBearer(header: string | undefined, secret: Secret): boolean {
  return isSameSecret(header ?? "", `Bearer ${secret.reveal()}`);
}
