import { constants } from "node:os";

export interface PlatformErrorOptions {
  /** The message for callers. Absent for internal failures, of which callers see only the status. */
  readonly publicMessage?: string;
  /** A machine-readable detail that clients know (`error_code` on the wire). */
  readonly detailCode?: string;
  readonly cause?: unknown;
}

/**
 * The error codes of each package, as closed unions. A package that throws PlatformError adds its union in its own `errors.ts`, so a
 * misspelt code is a type error, both where it is thrown and where it is compared. `tests/repo/error-codes.test.ts` checks that a package
 * throws its own codes only.
 */
export interface ErrorCodes {
  readonly base: "config_invalid" | "record_unreadable" | "system_call_failed";
}

export type PlatformErrorCode = ErrorCodes[keyof ErrorCodes];

/** The one error class that crosses package boundaries. `message` is for logs; `publicMessage` is for callers. */
export class PlatformError extends Error {
  readonly code: PlatformErrorCode;
  readonly publicMessage: string | undefined;
  readonly detailCode: string | undefined;
  constructor(code: PlatformErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PlatformError";
    this.code = code;
    this.publicMessage = options.publicMessage;
    this.detailCode = options.detailCode;
  }
}

export function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}

/** The code of a system error, such as `ENOENT`, from the error or one of its causes; undefined when there is none. */
export function errnoOf(value: unknown): string | undefined {
  for (let error = value; error instanceof Error; error = error.cause) {
    const code = (error as NodeJS.ErrnoException).code;
    if (typeof code === "string" && /^E[A-Z0-9]+$/.test(code)) return code;
  }
  return undefined;
}

/** Whether an operation failed because a disk or a quota is full. */
export function isOutOfSpace(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(errnoOf(error) ?? "");
}

/** The name of an error number, such as `ENOENT`. */
export function errnoName(errno: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`;
}
