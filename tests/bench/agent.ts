// The agent beside what it stands for: the same programs run by a loop inside the same sandbox.

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type Platform, startPlatform } from "@skerry/testkit";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";
import type { Sandbox } from "e2b";
import type { Bench, Row } from "./bench.ts";
import { createSandbox } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const ROUNDS = 60;
const OUTPUT_MB = 100;
const STREAMS = 1_000;

/** Milliseconds of each `bash -l -c true`, started by a small program that does nothing else. */
const LOOP = `import os, time
argv = ["/bin/bash", "-l", "-c", "true"]
for _ in range(${ROUNDS}):
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)
    print((time.perf_counter() - start) * 1000)
`;

export const agent: Bench = {
  name: "agent",
  title: "The agent: commands, output, files and memory",
  async run() {
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const runtime of ["gvisor", "runc"] as const) {
      await using platform = await startPlatform({ runtime });
      const sandbox = await createSandbox(platform);
      const on = new OneSandbox(platform, sandbox);
      const add = (name: string, unit: string, samples: number[]) =>
        rows.push({ name: `${name}, ${runtime}`, unit, ...distribution(samples), samples });
      add("memory of the idle agent", "MiB", [await on.agentMemory()]);
      const calls = await on.commands();
      const loop = await on.loop();
      add("commands.run('true')", "ms", calls);
      add("  bash -l -c true in a loop inside", "ms", loop);
      notes.push(`${runtime}: a command costs ${(distribution(calls).p50 / distribution(loop).p50).toFixed(2)} times the loop's`);
      add(`${OUTPUT_MB} MB of output through Start`, "MB/s", await on.output());
      add("  cat of the same into a file inside", "MB/s", await on.catToFile());
      add("Stat", "ms", await on.stats());
      add("ListDir of 10,000 entries", "ms", await on.lists());
      add(`${STREAMS} streams of 'sleep 5' at once`, "ms", [await on.streams()]);
      add("memory of the agent after them", "MiB", [await on.agentMemory()]);
      await sandbox.kill();
    }
    return { rows, notes };
  },
};

class OneSandbox {
  readonly #sandbox: Sandbox;
  readonly #process;
  readonly #filesystem;

  constructor(platform: Platform, sandbox: Sandbox) {
    this.#sandbox = sandbox;
    const { envdAccessToken = "" } = sandbox as unknown as { envdAccessToken?: string };
    const transport = createConnectTransport({
      baseUrl: platform.edgeUrl,
      httpVersion: "1.1",
      useBinaryFormat: true,
      interceptors: [
        (next) => (request) => {
          request.header.set("E2b-Sandbox-Id", sandbox.sandboxId);
          request.header.set("E2b-Sandbox-Port", "49983");
          request.header.set("X-Access-Token", envdAccessToken);
          return next(request);
        },
      ],
    });
    this.#process = createClient(Process, transport);
    this.#filesystem = createClient(Filesystem, transport);
  }

  async agentMemory(): Promise<number> {
    const { stdout } = await this.#sandbox.commands.run("grep VmRSS /proc/1/status", { user: "root" });
    return Number(/(\d+) kB/.exec(stdout)?.[1]) / 1024;
  }

  commands(): Promise<number[]> {
    return samples(() => this.#sandbox.commands.run("true"));
  }

  async loop(): Promise<number[]> {
    await this.#sandbox.files.write("/tmp/loop.py", LOOP);
    const { stdout } = await this.#sandbox.commands.run("python3 /tmp/loop.py");
    return stdout.trim().split("\n").map(Number);
  }

  async output(): Promise<number[]> {
    await this.#sandbox.commands.run(`head -c ${OUTPUT_MB}000000 /dev/urandom > /tmp/output`);
    return speeds(async () => {
      let bytes = 0;
      for await (const { event } of this.#process.start({ process: { cmd: "cat", args: ["/tmp/output"] }, stdin: false })) {
        if (event?.event.case === "data") bytes += event.event.value.output.value?.length ?? 0;
      }
      if (bytes !== OUTPUT_MB * 1e6) throw new Error(`${bytes} bytes of output arrived`);
    });
  }

  async catToFile(): Promise<number[]> {
    const { stdout } = await this.#sandbox.commands.run(
      "for i in 1 2 3 4; do start=$(date +%s%N); cat /tmp/output > /tmp/copy; end=$(date +%s%N); echo $((end - start)); done",
    );
    return stdout
      .trim()
      .split("\n")
      .slice(1)
      .map((ns) => OUTPUT_MB / (Number(ns) / 1e9));
  }

  stats(): Promise<number[]> {
    return samples(() => this.#filesystem.stat({ path: "/etc/hostname" }), 1_000);
  }

  async lists(): Promise<number[]> {
    await this.#sandbox.commands.run("mkdir -p /tmp/many && cd /tmp/many && seq 10000 | xargs touch");
    return samples(async () => {
      const { entries } = await this.#filesystem.listDir({ path: "/tmp/many", depth: 1 });
      if (entries.length !== 10_000) throw new Error(`${entries.length} entries were listed`);
    }, 5);
  }

  streams(): Promise<number> {
    const one = async () => {
      for await (const { event } of this.#process.start({ process: { cmd: "sleep", args: ["5"] }, stdin: false })) {
        if (event?.event.case === "end" && event.event.value.exitCode !== 0) throw new Error("a sleep did not end well");
      }
    };
    return timed(() => Promise.all(Array.from({ length: STREAMS }, one)));
  }
}

async function samples(once: () => Promise<unknown>, rounds = ROUNDS): Promise<number[]> {
  const taken: number[] = [];
  for (let round = -2; round < rounds; round += 1) {
    const elapsed = await timed(once);
    if (round >= 0) taken.push(elapsed);
  }
  return taken;
}

async function speeds(once: () => Promise<unknown>): Promise<number[]> {
  return (await samples(once, 3)).map((ms) => OUTPUT_MB / (ms / 1000));
}
