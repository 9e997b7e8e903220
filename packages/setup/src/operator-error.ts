import type { ExitCode } from "./exit-codes.ts";

/** A failure that a person at the terminal has to do something about: what happened, and how to mend it. */
export class OperatorError extends Error {
  readonly exit: ExitCode;
  /** What to do, one line each. */
  readonly mend: readonly string[];
  constructor(message: string, options: { mend?: readonly string[]; exit?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "OperatorError";
    this.exit = options.exit ?? "failed";
    this.mend = options.mend ?? [];
  }
}
