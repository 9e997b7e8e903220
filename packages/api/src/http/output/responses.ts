import type { ResponseSpec } from "../operation.ts";
import { ErrorSchema, SandboxSchema } from "../schemas.ts";
import { MEMORY_LOST_HEADER } from "./encode-sandbox.ts";

const TEXT: Readonly<Record<number, string>> = {
  400: "The request is not valid.",
  401: "The credentials are missing or wrong.",
  403: "The object belongs to another team.",
  404: "The object does not exist, or it belongs to another team.",
  409: "Another operation is changing its state.",
  413: "The body is larger than 16 MiB.",
  422: "The `Idempotency-Key` was used for a different request.",
  429: "A limit is reached.",
  500: "The platform failed.",
  501: "Not built yet.",
  503: "The platform cannot do this now. `Should-Retry` says whether to try again.",
  504: "The operation took too long.",
};

/** The answer for a sandbox that was started. */
export const STARTED: ResponseSpec = {
  description: "The sandbox runs.",
  schema: SandboxSchema,
  headers: {
    [MEMORY_LOST_HEADER]: "Why the sandbox started from its disk, although its source had memory. Absent in every other case.",
  },
};

/** The failures of an operation: the given ones, and those that every operation has. */
export function failures(...statuses: readonly number[]): Record<number, ResponseSpec> {
  const all = [...new Set([400, 401, 500, ...statuses])].sort((a, b) => a - b);
  return Object.fromEntries(all.map((status) => [status, { description: TEXT[status] ?? "A failure.", schema: ErrorSchema }]));
}
