// The agent, compared with a loop inside the same sandbox that runs the same programs, and with nginx for file transfers.

import { startPlatform } from "@skerry/testkit";
import type { Bench, BenchOptions, Measured, Row } from "../bench.ts";
import { addBigTemplate } from "../big-template.ts";
import { createSandbox } from "../sdk.ts";
import { distribution } from "../statistics.ts";
import { commandsAndLoop, startsAgain } from "./agent-commands.ts";
import { listings, outputAndCat, sleepsAndLoop } from "./agent-loads.ts";
import { AgentMemory, largeTransfer, runMany } from "./agent-memory.ts";
import { openAgentSandbox } from "./agent-sandbox.ts";
import { transfers } from "./agent-transfer.ts";
import { fetchNginx } from "./nginx.ts";

const PROCESSES = 1_000;

export const agent: Bench = {
  name: "agent",
  title: "The agent: commands, output, files and memory",
  async run(options) {
    const rows: Row[] = [];
    const notes: string[] = [];
    const fetched = await fetchNginx();
    const nginx = fetched instanceof Error ? undefined : fetched;
    if (fetched instanceof Error) notes.push(`transfers have no peer, because nginx could not be downloaded: ${fetched.message}`);
    for (const runtime of ["gvisor", "runc"] as const) {
      const measured = await measure(runtime, { options, nginx });
      rows.push(...measured.map(([name, unit, samples]) => ({ name: `${name}, ${runtime}`, unit, ...distribution(samples), samples })));
      notes.push(...ratios(runtime, measured));
    }
    return { rows, notes };
  },
};

async function measure(
  runtime: "gvisor" | "runc",
  { options, nginx }: { options: BenchOptions; nginx: Uint8Array | undefined },
): Promise<Measured[]> {
  // The largest file may exceed the default disk limit of a sandbox.
  await using platform = await startPlatform({ runtime, env: { SKERRY_DISK_LIMIT: "none" } });
  await addBigTemplate(platform);
  const sandbox = await openAgentSandbox(platform, await createSandbox(platform, "big"));
  const memory = new AgentMemory(sandbox);
  const measured: Measured[] = [];
  const add = (name: string, unit: string, samples: number[]) => measured.push([name, unit, samples]);

  add("memory of the agent, idle", "MiB", [await memory.settled()]);
  const { commands, loop, nothing } = await commandsAndLoop(sandbox);
  add("commands.run('true')", "ms", commands);
  add("  bash -l -c true in a loop inside", "ms", loop);
  add("  an SDK call that starts nothing", "ms", nothing);
  const starts = await startsAgain(sandbox);
  add("the agent, from start to answering", "ms", starts.agent);
  add("  the same Node.js with a server of one line", "ms", starts.plain);
  const output = await outputAndCat(sandbox);
  add("100 MB of output through Start", "MB/s", output.start);
  add("  cat of the same into a file inside", "MB/s", output.cat);
  const { stat, list, find, scan } = await listings(sandbox);
  add("Stat", "ms", stat);
  add("ListDir of 100,000 entries", "ms", list);
  add("  find -ls of the same inside", "ms", find);
  add("  scandir, lstat and listxattr of the same by Python", "ms", scan);
  for (const [name, samples] of await transfers(sandbox, { megabytes: options.transferMb, nginx })) add(name, "MB/s", samples);
  await runMany(sandbox, PROCESSES);
  add(`memory of the agent after ${PROCESSES} processes`, "MiB", [await memory.settled()]);
  const sleeps = await sleepsAndLoop(sandbox, options.streams);
  add(`${options.streams} streams of 'sleep 5' at once`, "ms", [sleeps.streams]);
  add("  as many sleeps started by a loop inside", "ms", [sleeps.loop]);
  add("memory of the agent after them", "MiB", [await memory.settled()]);
  const large = await largeTransfer(sandbox, { megabytes: options.largeMb, memory });
  add(`${options.largeMb} MB up, memory of the agent meanwhile`, "MiB", large.up);
  add(`${options.largeMb} MB down, memory of the agent meanwhile`, "MiB", large.down);
  add("memory of the agent after both", "MiB", [await memory.settled()]);
  await sandbox.sdk.kill();
  return measured;
}

function ratios(runtime: string, measured: readonly Measured[]): string[] {
  const p50 = (name: string) => {
    const found = measured.find(([candidate]) => candidate === name);
    return found ? distribution(found[2]).p50 : Number.NaN;
  };
  const command = p50("commands.run('true')");
  const loop = p50("  bash -l -c true in a loop inside");
  const lines = [`${runtime}: a command takes ${(command / loop).toFixed(2)} times as long as in the loop`];
  for (const way of ["upload", "download"]) {
    const ratio = p50(`  ${way}, nginx`) / p50(way);
    if (!Number.isNaN(ratio)) lines.push(`${runtime}: ${way} takes ${ratio.toFixed(2)} times as long as nginx's`);
  }
  return lines;
}
