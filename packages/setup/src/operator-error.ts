/** What ./skerry answers to the shell. `./skerry --help` prints this table. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: "it worked" },
  failed: { code: 1, meaning: "it did not work; the message says what to do" },
  usage: { code: 2, meaning: "the command line or a setting is wrong" },
  notRunning: { code: 3, meaning: "the platform is not running (status, env, logs)" },
  unfit: { code: 4, meaning: "this machine lacks something that is needed (doctor, up)" },
  notRoot: { code: 5, meaning: "this needs root" },
  interrupted: { code: 130, meaning: "stopped by Ctrl-C" },
} as const;

export type ExitCode = keyof typeof EXIT_CODES;

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
