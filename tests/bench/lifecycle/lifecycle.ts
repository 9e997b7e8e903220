// Create (from the pool, restored, booted), pause, resume, snapshot, fork and kill through the official SDK, one at a time and many at once.
// The peers in the same run are bare `runsc run` and `runc run` of /bin/echo.

import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { openBare } from "../bare.ts";
import type { Bench, Measured, Row } from "../bench.ts";
import { addBigTemplate } from "../big-template.ts";
import { connection, createSandbox, echo } from "../sdk.ts";
import { distribution, timed } from "../statistics.ts";
import { bursts } from "./bursts.ts";
import { idleCosts } from "./idle.ts";

const ROUNDS = 20;
const WARM_UP = 2;
/** Time for the pool to replace a claimed sandbox. */
const REFILL_MS = 800;
/** Time until the node has made the image of the template and filled the pool. */
const FIRST_FILL_MS = 13_000;
const FORKS = 16;
const WRITTEN_MB = [64, 1_024, 4_096];

export const lifecycle: Bench = {
  name: "lifecycle",
  title: "Lifecycle on gVisor, through the SDK",
  async run() {
    const measured: Measured[] = [];
    measured.push(...(await claims()));
    {
      // Without a pool, so that each create boots or restores.
      await using platform = await startPlatform({ runtime: "gvisor" });
      await addBigTemplate(platform);
      measured.push(...(await restores(platform)));
      measured.push(...(await writtenDisks(platform)));
      measured.push(...(await bigMemory(platform)));
      measured.push(...(await forks(platform)));
    }
    measured.push(...(await bursts()));
    measured.push(...(await idleCosts()));
    const rows: Row[] = measured.map(([name, unit, samples]) => ({ name, unit, ...distribution(samples), samples }));
    return { rows, notes: notesOn(rows) };
  },
};

/** The contenders take turns, so that other load on the host affects all of them alike. */
async function claims(): Promise<Measured[]> {
  await using platform = await startPlatform({ runtime: "gvisor", env: { SKERRY_POOL_SIZE: "4" } });
  await using runsc = await openBare("runsc");
  await using runc = await openBare("runc");
  await (await createSandbox(platform)).kill();
  await sleep(FIRST_FILL_MS);
  const samples = { created: [] as number[], output: [] as number[], killed: [] as number[], runsc: [] as number[], runc: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    await sleep(REFILL_MS);
    const startedAt = performance.now();
    const sandbox = await createSandbox(platform);
    const created = performance.now() - startedAt;
    await echo(sandbox);
    const output = performance.now() - startedAt;
    const killed = await timed(() => sandbox.kill());
    await sleep(REFILL_MS);
    const [bareRunsc, bareRunc] = [await timed(() => runsc.run()), await timed(() => runc.run())];
    if (round < 0) continue;
    samples.created.push(created);
    samples.output.push(output);
    samples.killed.push(killed);
    samples.runsc.push(bareRunsc);
    samples.runc.push(bareRunc);
  }
  const claimed = platform.logs().match(/"start_kind":"claim"/g)?.length ?? 0;
  if (claimed < ROUNDS) throw new Error(`only ${claimed} of ${ROUNDS} creates were claims`);
  return [
    ["bare runsc run", "ms", samples.runsc],
    ["bare runc run", "ms", samples.runc],
    ["create, from the pool", "ms", samples.created],
    ["first output, from the pool", "ms", samples.output],
    ["kill", "ms", samples.killed],
  ];
}

async function restores(platform: Platform): Promise<Measured[]> {
  const samples = {
    booted: [] as number[],
    restored: [] as number[],
    paused: [] as number[],
    resumed: [] as number[],
    snapshot: [] as number[],
  };
  const source = await createSandbox(platform);
  const { snapshotId } = await source.createSnapshot();
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    let sandbox: Sandbox | undefined;
    const booted = await timed(async () => {
      sandbox = await createSandbox(platform);
    });
    await sandbox?.kill();
    const restored = await timed(async () => {
      sandbox = await Sandbox.create(snapshotId, connection(platform));
    });
    await sandbox?.kill();
    const paused = await timed(() => source.pause());
    const resumed = await timed(async () => echo(await Sandbox.connect(source.sandboxId, connection(platform))));
    const snapshot = round % 5 === 0 ? await timed(() => source.createSnapshot()) : undefined;
    if (round < 0) continue;
    samples.booted.push(booted);
    samples.restored.push(restored);
    samples.paused.push(paused);
    samples.resumed.push(resumed);
    if (snapshot !== undefined) samples.snapshot.push(snapshot);
  }
  await source.kill();
  return [
    ["create, booted", "ms", samples.booted],
    ["create, restored", "ms", samples.restored],
    ["pause", "ms", samples.paused],
    ["resume to first output", "ms", samples.resumed],
    ["snapshot of a running sandbox", "ms", samples.snapshot],
  ];
}

async function writtenDisks(platform: Platform): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const megabytes of WRITTEN_MB) {
    const sandbox = await createSandbox(platform);
    await sandbox.commands.run(`dd if=/dev/zero of=/home/user/written bs=1M count=${megabytes} status=none`, { timeoutMs: 600_000 });
    const samples: number[] = [];
    for (let round = -1; round < 5; round++) {
      await sandbox.pause();
      const elapsed = await timed(() => Sandbox.connect(sandbox.sandboxId, connection(platform)));
      if (round >= 0) samples.push(elapsed);
    }
    await sandbox.kill();
    measured.push([`resume with ${megabytes} MB written`, "ms", samples]);
  }
  return measured;
}

async function bigMemory(platform: Platform): Promise<Measured[]> {
  const sandbox = await createSandbox(platform, "big");
  const program = "import os,time; held=[os.urandom(1<<24) for _ in range(64)]; open('/tmp/ready','w').close(); time.sleep(10**6)";
  await sandbox.commands.run(`python3 -c "${program}"`, { background: true, timeoutMs: 0 });
  await sandbox.commands.run("while ! test -e /tmp/ready; do sleep 0.2; done", { timeoutMs: 120_000 });
  const paused: number[] = [];
  const resumed: number[] = [];
  for (let round = 0; round < 3; round++) {
    paused.push(await timed(() => sandbox.pause()));
    resumed.push(await timed(async () => echo(await Sandbox.connect(sandbox.sandboxId, connection(platform)))));
  }
  await sandbox.kill();
  return [
    ["pause with 1 GiB of random memory", "ms", paused],
    ["resume with it, to first output", "ms", resumed],
  ];
}

async function forks(platform: Platform): Promise<Measured[]> {
  const source = await createSandbox(platform);
  const samples: number[] = [];
  for (let round = 0; round < 3; round++) {
    let made: readonly unknown[] = [];
    samples.push(
      await timed(async () => {
        made = await source.fork({ count: FORKS });
      }),
    );
    await Promise.all(made.map((one) => killFork(one)));
  }
  await source.kill();
  return [[`fork into ${FORKS}`, "ms", samples]];
}

async function killFork(fork: unknown): Promise<void> {
  if (fork instanceof Sandbox) await fork.kill();
  else throw new Error(`a fork failed: ${String(fork)}`);
}

function notesOn(rows: readonly Row[]): string[] {
  const row = (name: string) => rows.find((one) => one.name.startsWith(name));
  const bare = row("bare runsc run")?.p50 ?? Number.NaN;
  const times = (name: string, figure: "p50" | "p99" = "p50") => ((row(name)?.[figure] ?? Number.NaN) / bare).toFixed(2);
  const single = row("create, restored")?.p50 ?? Number.NaN;
  const against = (name: string, figure: "p50" | "p99" = "p50") => ((row(name)?.[figure] ?? Number.NaN) / single).toFixed(1);
  return [
    `create from the pool: ${times("create, from the pool")} times bare runsc run (target: 0.25)`,
    `first output from the pool: ${times("first output, from the pool")} times, p99 ${times("first output, from the pool", "p99")} (targets: 0.7, 2)`,
    `create by restore: ${times("create, restored")} times (target: 2)`,
    `pause ${times("pause")} times, resume ${times("resume to first output")} times (targets: 2, 2.5)`,
    `50 creates at once, p99: ${against("50 creates at once, pool of 8", "p99")} single restores (target: 30), with a pool of 50 ${against("50 creates at once, pool of 50", "p99")} (target: 10)`,
    `fork into ${FORKS}: ${against("fork into")} single restores (target: 12)`,
  ];
}
