import { PlatformError } from "@skerry/base";
import { ERROR_CATALOG, type ErrorCode } from "@skerry/wire";
import { databaseUnavailable, isErrorCode, publicError, validationError } from "../../errors.ts";
import type { Operation } from "../operation.ts";

export interface EncodedError {
  readonly status: number;
  /** The code of the error, or the more exact one that clients get. */
  readonly reason: string;
  readonly body: { readonly code: number; readonly message: string; readonly error_code?: string };
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the platform is at fault, so that the whole error is logged. */
  readonly isOurs: boolean;
}

/** The operation that failed, as far as its failures depend on it. */
export type FailedOperation = Pick<Operation, "repeatable" | "confidential">;

export const NO_STORE = { "cache-control": "no-store" };

/** Encodes an error for callers. An internal error reveals no details. */
export function encodeError(error: unknown, operation: FailedOperation | undefined): EncodedError {
  const failure = toPlatformError(error, operation);
  const code = isErrorCode(failure.code) ? failure.code : "internal";
  const { status, fault, retryable } = ERROR_CATALOG[code];
  const message = operation?.confidential?.messages[status] ?? failure.publicMessage ?? "An internal error occurred";
  const needsAdvice = status === 429 || status >= 500 || retryable;
  const mayHelp = retryable && mayRepeat(code, operation);
  return {
    status,
    reason: failure.detailCode ?? code,
    body: { code: status, message, ...(failure.detailCode === undefined ? {} : { error_code: failure.detailCode }) },
    headers: {
      ...(operation?.confidential ? NO_STORE : {}),
      ...(needsAdvice ? { "Should-Retry": String(mayHelp) } : {}),
      ...(mayHelp ? { "Retry-After": RETRY_AFTER_SECONDS } : {}),
    },
    isOurs: fault === "platform" && code !== "not_implemented",
  };
}

/** Short, because some clients wait silently for as long as this header says. */
const RETRY_AFTER_SECONDS = "1";

const NOT_BEGUN: ReadonlySet<ErrorCode> = new Set([
  "capacity_unavailable",
  "database_unavailable",
  "in_progress",
  "provider_unavailable",
  "rate_limited",
]);

/**
 * Whether the same request may be sent again. Nothing was begun when capacity or the database was missing, when there were too many requests,
 * or when the same request was still under way. After any other failure something may have been done, so only repeatable operations may be repeated.
 */
function mayRepeat(code: ErrorCode, operation: { readonly repeatable: boolean } | undefined): boolean {
  return NOT_BEGUN.has(code) || operation?.repeatable === true;
}

function toPlatformError(error: unknown, operation: { readonly repeatable: boolean } | undefined): PlatformError {
  if (error instanceof PlatformError && isErrorCode(error.code)) return error;
  // The credential was right when the request came. It is no more.
  if (error instanceof PlatformError && error.code === "team_deleted") {
    return publicError("unauthenticated", "The team was deleted", { cause: error });
  }
  const { statusCode, code, message } = error as { statusCode?: number; code?: string; message?: string };
  if (statusCode === 413) return publicError("payload_too_large", "the body is larger than 16 MiB", { cause: error });
  if (code === "FST_ERR_BAD_URL") return validationError("the path is not percent-encoded correctly");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return validationError(message ?? "the request is not valid");
  // An operation that must not be repeated may have been carried out, with only its answer lost.
  const unavailable = operation?.repeatable ? databaseUnavailable(error, "try again") : undefined;
  return unavailable ?? new PlatformError("internal", "an operation failed", { cause: error });
}
