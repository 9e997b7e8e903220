import type { ResponseSpec } from "../operation.ts";
import { ErrorSchema, SandboxSchema } from "../schemas.ts";
import { MEMORY_LOST_HEADER } from "./encode-sandbox.ts";

const TEXT: Readonly<Record<number, string>> = {
  400: "The request is not valid.",
  401: "The credentials are missing or wrong.",
  404: "There is nothing of that name, or it is not yours.",
  409: "It is changing its state right now.",
  413: "The body is larger than 16 MiB.",
  422: "The `Idempotency-Key` was given with another request before.",
  429: "A limit is reached.",
  500: "The platform failed.",
  501: "It is specified, and not built yet.",
  503: "The platform cannot do it now; `Should-Retry` says whether to try again.",
  504: "It took too long.",
};

/** A sandbox that has just come to run. */
export const STARTED: ResponseSpec = {
  description: "It is running.",
  schema: SandboxSchema,
  headers: {
    [MEMORY_LOST_HEADER]: "Only where the memory of what it was made from could not be brought back, and it started from the disk: why.",
  },
};

/** The failures that an operation can answer with, besides those that every operation can. */
export function failures(...statuses: readonly number[]): Record<number, ResponseSpec> {
  const all = [...new Set([400, 401, 500, ...statuses])].sort((a, b) => a - b);
  return Object.fromEntries(all.map((status) => [status, { description: TEXT[status] ?? "A failure.", schema: ErrorSchema }]));
}
