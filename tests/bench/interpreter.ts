// The code interpreter beside a plain sandbox of the same platform, and what an idle interpreter and an idle desktop keep of the host's memory.
// Builds the templates that ship first, which takes minutes.

import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox as Interpreter } from "@e2b/code-interpreter";
import { Sandbox as Desktop } from "@e2b/desktop";
import type { Platform } from "@skerry/testkit";
import { startShippedPlatform } from "../e2e/shipped-platform.ts";
import type { Bench, Measured } from "./bench.ts";
import { availableMiB } from "./host-usage.ts";
import { connection, createSandbox, echo } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const ROUNDS = 20;
const WARM_UP = 2;
const RUNS = 100;
/** Until the pool has a ready sandbox of both templates again. */
const REFILL_MS = 4_000;
const IDLE = 4;
const SETTLE_MS = 14_000;

export const interpreter: Bench = {
  name: "interpreter",
  title: "The code interpreter beside a plain sandbox",
  async run() {
    const onGvisor = await onRuntime("gvisor");
    const onRunc = await onRuntime("runc");
    const measured = [...onGvisor, ...onRunc];
    const rows = measured.map(([name, unit, samples]) => ({ name, unit, samples, ...distribution(samples) }));
    const p50 = (name: string) => rows.find((row) => row.name === name)?.p50 ?? Number.NaN;
    const ratio = (what: string) => (p50(`gvisor: ${what} runCode`) / p50(`gvisor: ${what} command of a plain sandbox`)).toFixed(2);
    return {
      rows,
      notes: [
        `on gvisor the first runCode took ${ratio("create and first")} times the first command of a plain sandbox, both with the create (target: at most 1.3)`,
        `without the create: ${ratio("first")} times`,
        `memory: decrease of MemAvailable, divided by ${IDLE} sandboxes`,
      ],
    };
  },
};

async function onRuntime(runtime: "gvisor" | "runc"): Promise<Measured[]> {
  const templates = runtime === "gvisor" ? ["code-interpreter-v1", "desktop"] : ["code-interpreter-v1"];
  await using shipped = await startShippedPlatform(runtime, ...templates);
  const { platform } = shipped;
  const measured = [...(await firstResults(platform)), await manyResults(platform), ...(await idleMemory(platform, templates))];
  return measured.map(([name, unit, samples]) => [`${runtime}: ${name}`, unit, samples] as const);
}

/** The contenders take turns, so that other load on the host affects both alike. */
async function firstResults(platform: Platform): Promise<Measured[]> {
  const samples = { codeCreate: [] as number[], code: [] as number[], plainCreate: [] as number[], plain: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    await sleep(REFILL_MS);
    const code = await once(() => Interpreter.create(connection(platform)), runOne);
    await sleep(REFILL_MS);
    const plain = await once(() => createSandbox(platform), echo);
    if (round < 0) continue;
    samples.codeCreate.push(code.create + code.first);
    samples.code.push(code.first);
    samples.plainCreate.push(plain.create + plain.first);
    samples.plain.push(plain.first);
  }
  return [
    ["create and first runCode", "ms", samples.codeCreate],
    ["create and first command of a plain sandbox", "ms", samples.plainCreate],
    ["first runCode", "ms", samples.code],
    ["first command of a plain sandbox", "ms", samples.plain],
  ];
}

async function once<T extends { kill(): Promise<unknown> }>(create: () => Promise<T>, use: (sandbox: T) => Promise<void>) {
  const startedAt = performance.now();
  const sandbox = await create();
  const createdAt = performance.now();
  await use(sandbox);
  const usedAt = performance.now();
  await sandbox.kill();
  return { create: createdAt - startedAt, first: usedAt - createdAt };
}

async function runOne(sandbox: Interpreter): Promise<void> {
  const { text } = await sandbox.runCode("1 + 1");
  if (text !== "2") throw new Error(`1 + 1 is ${JSON.stringify(text)}`);
}

async function manyResults(platform: Platform): Promise<Measured> {
  const sandbox = await Interpreter.create(connection(platform));
  const taken = await timed(async () => {
    for (let run = 0; run < RUNS; run++) await runOne(sandbox);
  });
  await sandbox.kill();
  return [`${RUNS} results, one after the other`, "ms", [taken]];
}

async function idleMemory(platform: Platform, templates: readonly string[]): Promise<Measured[]> {
  const plain = await idleOf(() => createSandbox(platform).then(async (sandbox) => echo(sandbox).then(() => sandbox)));
  const code = await idleOf(() => Interpreter.create(connection(platform)));
  const rows: Measured[] = [
    ["memory of an idle plain sandbox", "MiB", [plain]],
    ["memory of an idle interpreter", "MiB", [code]],
  ];
  if (templates.includes("desktop"))
    rows.push(["memory of an idle desktop", "MiB", [await idleOf(() => Desktop.create(connection(platform)))]]);
  return rows;
}

/** The first sandbox does not count, because it loads files into the page cache that all of them share. */
async function idleOf(create: () => Promise<{ kill(): Promise<unknown> }>): Promise<number> {
  const sandboxes = [await create()];
  await sleep(SETTLE_MS);
  const before = availableMiB();
  for (let made = 0; made < IDLE; made++) sandboxes.push(await create());
  await sleep(SETTLE_MS);
  const used = (before - availableMiB()) / IDLE;
  for (const sandbox of sandboxes) await sandbox.kill();
  return used;
}
