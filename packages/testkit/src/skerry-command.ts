// ./skerry as a user runs it, on a data folder of a test.

import { join } from "node:path";
import { runCommand, type SpawnOptions, SubprocessError, spawnCommand } from "@skerry/base";

/** The command of this checkout. */
const SKERRY = join(import.meta.dirname, "../../../skerry");
/** What every machine sets. A platform that starts with it keeps one sandbox ready. */
export const USER_ENV = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  LANG: "C.UTF-8",
  SKERRY_POOL_SIZE: "1",
} as const;
const LIMIT_MS = 120_000;

export interface SkerryAnswer {
  readonly exitCode: number | null;
  /** Empty after a failure. */
  readonly stdout: string;
  readonly stderr: string;
}

export interface SkerryCommandOptions {
  /** In addition to USER_ENV. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of another checkout. */
  readonly command?: string;
  /** After which a command that hangs is ended. Default: two minutes. */
  readonly limitMs?: number;
}

export class SkerryCommand {
  readonly data: string;
  readonly #env: Record<string, string>;
  readonly #command: string;
  readonly #limitMs: number;
  constructor(data: string, { env = {}, command = SKERRY, limitMs = LIMIT_MS }: SkerryCommandOptions = {}) {
    this.data = data;
    this.#env = { ...USER_ENV, ...env };
    this.#command = command;
    this.#limitMs = limitMs;
  }

  /** The same with more variables. */
  with(env: Readonly<Record<string, string>>): SkerryCommand {
    return new SkerryCommand(this.data, { env: { ...this.#env, ...env }, command: this.#command, limitMs: this.#limitMs });
  }

  /** Returns what it printed. Throws SubprocessError when it fails. */
  run(...args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
    return runCommand(this.#command, this.#withData(args), { env: this.#env, timeoutMs: this.#limitMs });
  }

  /** Like `run`, with the exit code of a failure. */
  async answer(...args: readonly string[]): Promise<SkerryAnswer> {
    try {
      return { exitCode: 0, ...(await this.run(...args)) };
    } catch (error) {
      if (!(error instanceof SubprocessError)) throw error;
      return { exitCode: error.exitCode, stdout: "", stderr: error.stderr };
    }
  }

  /** For commands that stay, or whose output a test follows. */
  spawn(args: readonly string[], streams: Pick<SpawnOptions, "stdout" | "stderr"> = {}): ReturnType<typeof spawnCommand> {
    return spawnCommand(this.#command, this.#withData(args), { env: this.#env, ...streams });
  }

  /** What the official SDKs need to connect. */
  async client(): Promise<{ apiKey: string; apiUrl: string; sandboxUrl: string; validateApiKey: false }> {
    const { E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL } = JSON.parse((await this.run("env", "--json")).stdout);
    return { apiKey: E2B_API_KEY, apiUrl: E2B_API_URL, sandboxUrl: E2B_SANDBOX_URL, validateApiKey: false };
  }

  #withData(args: readonly string[]): string[] {
    return [...args, "--data", this.data];
  }
}
