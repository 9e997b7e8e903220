import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Sandbox } from "e2b";

const PROGRAM = readFileSync(join(import.meta.dirname, "guest.py"), "utf8");
const PATH = "/root/guest.py";

/** Kinds of state that can coexist in one sandbox (see guest.py). The largest ones are created first. */
export const KEPT_STATES = [...PROGRAM.matchAll(/^@state\ndef (\w+)/gm)]
  .map(([, name = ""]) => name)
  .filter((name) => !name.startsWith("refused_"))
  // Threads last, because other states fork before there are threads.
  .sort((a, b) => Number(a === "threads") - Number(b === "threads"));

/** The program that holds them. It reports one word per state: `ok`, or what is wrong. */
export class HostileGuest {
  readonly sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  static async start(sandbox: Sandbox, env: Readonly<Record<string, string>> = {}): Promise<HostileGuest> {
    await sandbox.files.write(PATH, PROGRAM, { user: "root" });
    const ready = Promise.withResolvers<void>();
    const onStdout = (text: string) => (text.includes("ready") ? ready.resolve() : undefined);
    const running = await sandbox.commands.run(`python3 -u ${PATH}`, { user: "root", background: true, timeoutMs: 0, envs: env, onStdout });
    await Promise.race([ready.promise, running.wait()]);
    return new HostileGuest(sandbox);
  }

  make(...names: string[]): Promise<Record<string, string>> {
    return this.#ask("make", names);
  }

  drop(...names: string[]): Promise<Record<string, string>> {
    return this.#ask("drop", names);
  }

  check(): Promise<Record<string, string>> {
    return this.#ask("check", []);
  }

  async #ask(verb: string, names: readonly string[]): Promise<Record<string, string>> {
    const { stdout } = await this.sandbox.commands.run(`python3 ${PATH} ${[verb, ...names].join(" ")}`, {
      user: "root",
      timeoutMs: 120_000,
    });
    return JSON.parse(stdout) as Record<string, string>;
  }
}

export function allOk(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, "ok"]));
}
