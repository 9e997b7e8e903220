import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.ts";

/** Whether an `Authorization`-like header is `Bearer <secret>`. Digests are compared, so neither content nor length shows in the time it takes. */
export function isBearer(header: string | undefined, secret: Secret): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(header ?? ""), digest(`Bearer ${secret.reveal()}`));
}
