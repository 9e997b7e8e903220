/** One public error: its HTTP status on the platform API, and whether the caller or the platform caused it. */
export interface ErrorEntry {
  readonly status: number;
  readonly fault: "caller" | "platform";
  readonly retryable: boolean;
}

/** All public errors. A test compares `docs/errors.md` with this table. */
export const ERROR_CATALOG = {
  invalid_argument: { status: 400, fault: "caller", retryable: false },
  unauthenticated: { status: 401, fault: "caller", retryable: false },
  forbidden: { status: 403, fault: "caller", retryable: false },
  not_found: { status: 404, fault: "caller", retryable: false },
  conflict: { status: 409, fault: "caller", retryable: false },
  in_progress: { status: 409, fault: "caller", retryable: true },
  payload_too_large: { status: 413, fault: "caller", retryable: false },
  range_not_satisfiable: { status: 416, fault: "caller", retryable: false },
  key_mismatch: { status: 422, fault: "caller", retryable: false },
  state_not_savable: { status: 422, fault: "caller", retryable: false },
  rate_limited: { status: 429, fault: "caller", retryable: true },
  limit_reached: { status: 429, fault: "caller", retryable: false },
  internal: { status: 500, fault: "platform", retryable: false },
  not_implemented: { status: 501, fault: "platform", retryable: false },
  capacity_unavailable: { status: 503, fault: "platform", retryable: true },
  database_unavailable: { status: 503, fault: "platform", retryable: true },
  provider_unavailable: { status: 503, fault: "platform", retryable: true },
  node_unreachable: { status: 503, fault: "platform", retryable: true },
  deadline_exceeded: { status: 504, fault: "platform", retryable: false },
  volume_full: { status: 507, fault: "caller", retryable: false },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOG;
