// ./skerry bench [name] [sizes]: prints a table to stderr, and every sample as JSON to stdout.

import { parseArgs } from "node:util";
import { agent } from "./agent/agent.ts";
import { api } from "./api/api.ts";
import { areas } from "./areas.ts";
import type { Bench, BenchOptions, Row } from "./bench.ts";
import { build } from "./build/build.ts";
import { egress } from "./egress.ts";
import { firstOutput } from "./first-output.ts";
import { ingress } from "./ingress/ingress.ts";
import { interpreter } from "./interpreter.ts";
import { lifecycle } from "./lifecycle/lifecycle.ts";
import { describeMachine } from "./machine.ts";
import { memory } from "./memory.ts";
import { observe } from "./observe.ts";
import { roundtrip } from "./roundtrip.ts";
import { transfer } from "./transfer.ts";
import { volumes } from "./volumes.ts";

const BENCHES: readonly Bench[] = [
  firstOutput,
  roundtrip,
  transfer,
  memory,
  agent,
  areas,
  lifecycle,
  build,
  interpreter,
  ingress,
  egress,
  volumes,
  api,
  observe,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    "transfer-mb": { type: "string", default: "1000" },
    "large-mb": { type: "string", default: "10000" },
    streams: { type: "string", default: "1000" },
  },
});
const options: BenchOptions = {
  transferMb: positive("transfer-mb"),
  largeMb: positive("large-mb"),
  streams: positive("streams"),
};
const [wanted] = positionals;
const chosen = wanted === undefined ? BENCHES : BENCHES.filter((bench) => bench.name === wanted);
if (chosen.length === 0) {
  console.error(`unknown benchmark "${wanted}": use ${BENCHES.map((bench) => bench.name).join(", ")}`);
  process.exit(2);
}

const machine = await describeMachine();
console.error(
  Object.entries(machine)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n"),
);
const results: Record<string, unknown> = {};
for (const bench of chosen) {
  const result = await bench.run(options);
  results[bench.name] = { title: bench.title, ...result };
  console.error(`\n${bench.title}\n${formatTable(result.rows)}`);
  for (const note of result.notes) console.error(`  ${note}`);
}
console.log(JSON.stringify({ machine, results }));

function formatTable(rows: readonly Row[]): string {
  const width = Math.max(...rows.map((row) => row.name.length));
  const cell = (value: number) => value.toFixed(value < 10 ? 1 : 0).padStart(8);
  const single = rows.every((row) => row.count === 1);
  const header = single
    ? "".padEnd(width + 2)
    : `  ${"".padEnd(width)} ${["p50", "p95", "p99", "n"].map((name) => name.padStart(8)).join("")}\n`;
  const line = (row: Row) =>
    `  ${row.name.padEnd(width)} ${cell(row.p50)}${single ? ` ${row.unit}` : `${cell(row.p95)}${cell(row.p99)}${String(row.count).padStart(8)}`}`;
  return (single ? "" : header) + rows.map(line).join("\n");
}

function positive(name: keyof typeof values): number {
  const text = values[name];
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  console.error(`invalid number "${text}": --${name} takes a whole number above 0`);
  process.exit(2);
}
