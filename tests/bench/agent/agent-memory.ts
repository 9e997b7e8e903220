import { setTimeout as sleep } from "node:timers/promises";
import type { AgentSandbox } from "./agent-sandbox.ts";
import { download, filesPath, upload } from "./agent-transfer.ts";
import { ByteSource } from "./byte-source.ts";

/** Time after which an idle agent has collected its garbage. */
const SETTLE_MS = 8_000;
const LOOK_MS = 500;
const AT_ONCE = 20;

/** Resident memory of the agent's process, including mapped program files, in MiB. */
export class AgentMemory {
  readonly #sandbox: AgentSandbox;

  constructor(sandbox: AgentSandbox) {
    this.#sandbox = sandbox;
  }

  async now(): Promise<number> {
    const status = await this.#sandbox.shell("grep VmRSS /proc/1/status");
    return Number(/(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  async settled(): Promise<number> {
    await sleep(SETTLE_MS);
    return this.now();
  }

  /** Samples the memory until the work is done. */
  async during(work: Promise<unknown>): Promise<number[]> {
    const samples: number[] = [];
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    // A rejection is handled below. It must not end the program before that.
    done.catch(() => {});
    while (!isDone) {
      samples.push(await this.now());
      await sleep(LOOK_MS);
    }
    await done;
    return samples;
  }
}

/** Uploads and downloads one file, and samples the agent's memory meanwhile. */
export async function largeTransfer(
  sandbox: AgentSandbox,
  { megabytes, memory }: { megabytes: number; memory: AgentMemory },
): Promise<{ up: number[]; down: number[] }> {
  const bytes = megabytes * 1_000_000;
  const path = filesPath("/tmp/large");
  const sent = { path, port: undefined, method: "POST", bytes, source: new ByteSource() } as const;
  const up = await memory.during(upload(sandbox, sent));
  const down = await memory.during(download(sandbox, { path, port: undefined, bytes }));
  await sandbox.shell("rm /tmp/large");
  return { up, down };
}

export async function runMany(sandbox: AgentSandbox, count: number): Promise<void> {
  let started = 0;
  const worker = async () => {
    while (started++ < count) {
      for await (const { event } of sandbox.process.start({ process: { cmd: "/bin/true", args: [] }, stdin: false })) {
        if (event?.event.case === "end" && event.event.value.exitCode !== 0) throw new Error("a process failed");
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
