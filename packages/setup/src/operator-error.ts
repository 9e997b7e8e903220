/** Exit codes of ./skerry. `./skerry --help` prints this table. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: "success" },
  failed: { code: 1, meaning: "failure; the message says what to do" },
  usage: { code: 2, meaning: "invalid command line or setting" },
  notRunning: { code: 3, meaning: "the platform is not running (status, env, logs)" },
  unfit: { code: 4, meaning: "this host lacks something that the platform needs (doctor, up)" },
  notRoot: { code: 5, meaning: "root is required" },
  interrupted: { code: 130, meaning: "interrupted" },
} as const;

export type ExitCode = keyof typeof EXIT_CODES;

/** A failure that the user can fix: what happened, and what to do about it. */
export class OperatorError extends Error {
  readonly exit: ExitCode;
  /** What to do, one step per line. */
  readonly hints: readonly string[];
  constructor(message: string, options: { hints?: readonly string[]; exit?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "OperatorError";
    this.exit = options.exit ?? "failed";
    this.hints = options.hints ?? [];
  }
}
