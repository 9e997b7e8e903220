import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { asError, errnoOf } from "@skerry/base";
import type { Platform } from "@skerry/testkit";
import { CommandExitError, Sandbox, type SandboxOpts } from "e2b";
import { clientOf } from "../../e2e/client.ts";
import { type Check, compare, parseCheck, type Seen, SoakDifference } from "./check.ts";
import { GUEST_DIR, GUEST_LOG, GUEST_SOURCES, type Workload } from "./workloads.ts";

const SANDBOX_TIMEOUT_MS = 3_600_000;
const COMMAND_TIMEOUT_MS = 180_000;

/** A sandbox that runs a workload, and the last answer of the workload. */
export class Subject {
  readonly workload: Workload;
  readonly #platform: Platform;
  readonly #seen: Seen;
  #sandbox: Sandbox;
  #last: Check;
  #mark: string;

  private constructor(parts: { workload: Workload; platform: Platform; seen: Seen; sandbox: Sandbox; last: Check; mark: string }) {
    this.workload = parts.workload;
    this.#platform = parts.platform;
    this.#seen = parts.seen;
    this.#sandbox = parts.sandbox;
    this.#last = parts.last;
    this.#mark = parts.mark;
  }

  static async start(workload: Workload, template: string, context: { platform: Platform; seen: Seen }): Promise<Subject> {
    const sandbox = await Sandbox.create(template, { ...clientOptions(context.platform), timeoutMs: SANDBOX_TIMEOUT_MS });
    for (const name of workload.files) await sandbox.files.write(`${GUEST_DIR}/${name}`, readFileSync(join(GUEST_SOURCES, name), "utf8"));
    await run(sandbox, workload.start);
    const last = parseCheck(await run(sandbox, workload.check(false)));
    return new Subject({ workload, ...context, sandbox, last, mark: "" });
  }

  get sandboxId(): string {
    return this.#sandbox.sandboxId;
  }

  /** Checks that the workload's state is unchanged. Throws SoakDifference. */
  async check(deep = false): Promise<void> {
    const fromMs = Date.now();
    const now = parseCheck(await run(this.#sandbox, this.workload.check(deep)));
    compare(this.#last, now, { asked: { fromMs, toMs: Date.now() }, seen: this.#seen, mark: this.#mark });
    this.#last = now;
  }

  async pause(keepMemory = true): Promise<void> {
    if (!(await this.#sandbox.pause({ keepMemory }))) throw new SoakDifference("the sandbox was already paused");
  }

  async resume(): Promise<void> {
    this.#sandbox = await Sandbox.connect(this.sandboxId, { ...clientOptions(this.#platform), timeoutMs: SANDBOX_TIMEOUT_MS });
  }

  /** Size of its memory on disk while it is paused. */
  imageBytes(): number {
    const images = join(this.#platform.dataDir, "node/images");
    for (const id of readdirSync(images)) {
      const record = readImage(join(images, id, "image.json"));
      if (record?.identity.sandboxId !== this.sandboxId) continue;
      const { memory } = record;
      if (!memory) throw new SoakDifference("the sandbox was paused without its memory");
      return memory.files.reduce((sum, { size }) => sum + size, 0);
    }
    throw new SoakDifference("the paused sandbox has no image");
  }

  async fork(count: number): Promise<Subject[]> {
    const results = await this.#sandbox.fork({ count, timeoutMs: SANDBOX_TIMEOUT_MS });
    if (results.length !== count) throw new SoakDifference(`requested ${count} forks, got ${results.length}`);
    return results.map((result) => {
      if (result instanceof Error) throw new SoakDifference(`a fork did not start: ${result.message}`);
      const { workload, mark } = { workload: this.workload, mark: this.#mark };
      return new Subject({ workload, platform: this.#platform, seen: this.#seen, sandbox: result, last: this.#last, mark });
    });
  }

  /** Changes its memory or disk, so that it differs from all others. */
  async setMark(text: string): Promise<void> {
    await run(this.#sandbox, this.workload.mark(text));
    this.#mark = text;
  }

  async kill(): Promise<void> {
    await this.#sandbox.kill();
  }

  /** Lines of the platform's and the workload's logs that may explain a failure. */
  async explain(): Promise<string[]> {
    const log = this.#platform.logs().split("\n");
    const platform = log.filter((line) => line.includes(this.sandboxId) && /"level":"?([45]0|warn|error)|memory_lost_reason/.test(line));
    const guest = await this.#sandbox.commands
      .run(`tail -n 20 ${GUEST_LOG} /home/user/soak/*.log 2>/dev/null | tail -n 30`, { timeoutMs: 10_000, requestTimeoutMs: 10_000 })
      .then(({ stdout }) => stdout.split("\n"))
      .catch((error: unknown) => [`the log of the workload is unreadable: ${asError(error).message}`]);
    return [...platform.slice(-5), ...guest].filter((line) => line.trim() !== "").map((line) => line.slice(0, 500));
  }
}

interface ImageFile {
  readonly identity: { readonly sandboxId: string };
  readonly memory?: { readonly files: readonly { readonly size: number }[] };
}

function readImage(path: string): ImageFile | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ImageFile;
  } catch (error) {
    // Images of other sandboxes are created and removed meanwhile.
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function clientOptions(platform: Platform): SandboxOpts {
  return { ...clientOf(platform), requestTimeoutMs: 300_000 };
}

async function run(sandbox: Sandbox, command: string): Promise<string> {
  try {
    return (await sandbox.commands.run(command, { timeoutMs: COMMAND_TIMEOUT_MS })).stdout;
  } catch (error) {
    if (error instanceof CommandExitError)
      throw new SoakDifference(`the check failed (exit code ${error.exitCode}): ${error.stderr.slice(-500)}`);
    throw error;
  }
}
