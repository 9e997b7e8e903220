import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.ts";

/** Whether a header like `Authorization` is `Bearer <secret>`. The comparison of digests takes the same time for any content and length. */
export function isBearer(header: string | undefined, secret: Secret): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(header ?? ""), digest(`Bearer ${secret.reveal()}`));
}
