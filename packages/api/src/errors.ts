import { PlatformError } from "@skerry/base";
import { isDatabaseAway, type Sandbox } from "@skerry/store";
import { ERROR_CATALOG, type ErrorCode } from "@skerry/wire";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly api: ErrorCode;
  }
}

export interface PublicErrorOptions {
  readonly detailCode?: string;
  readonly cause?: unknown;
}

/** An error whose message is shown to callers. */
export function publicError(code: ErrorCode, message: string, options: PublicErrorOptions = {}): PlatformError {
  return new PlatformError(code, message, { ...options, publicMessage: message });
}

export function invalid(message: string): PlatformError {
  return publicError("invalid_argument", message);
}

/** A request that does not match its schema, or a value that its field does not allow. */
export function validationError(detail: string): PlatformError {
  return publicError("invalid_argument", `validation error: ${detail}`);
}

/**
 * The error is the same for an unknown sandbox and for a sandbox of another team. For a day after a sandbox of the caller's team has ended,
 * the message says when and why.
 */
export function sandboxNotFound(id: string, ended?: Pick<Sandbox, "endedAt" | "endReason">): PlatformError {
  const message = `Sandbox "${id}" doesn't exist or you don't have access to it`;
  if (!ended || ended.endedAt === null) return publicError("not_found", message);
  return publicError("not_found", `${message}. It ended at ${new Date(ended.endedAt).toISOString()}: ${ended.endReason ?? "unknown"}`);
}

export function sandboxBusy(id: string, what = "killed"): PlatformError {
  return publicError("conflict", `Sandbox "${id}" is being ${what}`);
}

/** The failure that callers get when the database cannot be reached; undefined for every other error. */
export function databaseUnavailable(error: unknown, advice: string): PlatformError | undefined {
  if (!isDatabaseAway(error)) return undefined;
  return publicError("database_unavailable", `The platform's database cannot be reached now; ${advice}`, { cause: error });
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CATALOG, code);
}
