import { PlatformError } from "@skerry/base";
import { ERROR_CATALOG, type ErrorCode } from "@skerry/wire";

export interface PublicErrorOptions {
  readonly detailCode?: string;
  readonly cause?: unknown;
}

/** A failure whose message callers see. */
export function publicError(code: ErrorCode, message: string, options: PublicErrorOptions = {}): PlatformError<ErrorCode> {
  return new PlatformError(code, message, { ...options, publicMessage: message });
}

export function invalid(message: string): PlatformError<ErrorCode> {
  return publicError("invalid_argument", message);
}

/** What does not fit the schema, or is not what its place needs. */
export function validationError(detail: string): PlatformError<ErrorCode> {
  return publicError("invalid_argument", `validation error: ${detail}`);
}

export function notBuilt(what: string): PlatformError<ErrorCode> {
  return publicError("not_implemented", `${what} is not built yet`);
}

/** The same for an unknown sandbox and for one of another team. */
export function sandboxNotFound(id: string): PlatformError<ErrorCode> {
  return publicError("not_found", `Sandbox "${id}" doesn't exist or you don't have access to it`);
}

export function sandboxBusy(id: string): PlatformError<ErrorCode> {
  return publicError("conflict", `Sandbox "${id}" is being killed`);
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CATALOG, code);
}
