// The API and its database with a team that has 1, 1,000 and 100,000 sandboxes, on SQLite and PostgreSQL. The node is a fake that starts
// nothing, so the figures are those of the API alone: HTTP, credentials, limits, transactions. The platforms of all sizes are asked in turns, so
// that whatever else the machine does is the same for all of them.

import type { Bench, Measured, Row } from "../bench.ts";
import { distribution, timed } from "../statistics.ts";
import { openPlatform, type SizedPlatform } from "./sized-platform.ts";

const SIZES = [1, 1_000, 100_000] as const;
const ROUNDS = 300;
/** Compiled code and prepared statements come with the first requests. */
const WARM_UP = 40;

/** How much slower the largest team may be. */
const BOUNDS = { create: 1.3, get: 1.3, list: 2 } as const;

type Step = (platform: SizedPlatform) => Promise<number>;

const STEPS: Readonly<Record<keyof typeof BOUNDS, Step>> = {
  create: async (platform) => {
    let id = "";
    const elapsed = await timed(async () => {
      id = await platform.create();
    });
    await platform.kill(id);
    return elapsed;
  },
  get: async (platform) => await timed(() => platform.get()),
  list: async (platform) => await timed(() => platform.list()),
};

export const api: Bench = {
  name: "api",
  title: "the API with teams of 1, 1,000 and 100,000 sandboxes",
  async run() {
    const measured: Measured[] = [];
    const notes: string[] = [];
    for (const kind of ["sqlite", "postgres"] as const) {
      await using stack = new AsyncDisposableStack();
      const platforms = [];
      for (const size of SIZES) platforms.push(stack.use(await openPlatform(kind, { sandboxes: size })));
      for (const [name, step] of Object.entries(STEPS) as [keyof typeof BOUNDS, Step][]) {
        const samples = await inTurns(platforms, step);
        for (const [at, size] of SIZES.entries()) measured.push([`${kind}: ${name}, ${size} rows`, "ms", samples[at] ?? []]);
        const [small, , large] = samples.map((taken) => distribution(taken).p50);
        const ratio = (large ?? Number.NaN) / (small ?? Number.NaN);
        notes.push(
          `${kind}: ${name} is ${ratio.toFixed(2)} x as slow with 100,000 rows (bound ${BOUNDS[name]})${ratio > BOUNDS[name] ? " MISSED" : ""}`,
        );
      }
      const [platform] = platforms;
      if (platform) measured.push(...(await authentication(platform)));
    }
    return { rows: measured.map(rowOf), notes };
  },
};

/** What each credential costs: the same request with each in turns, beside one that needs none. */
async function authentication(platform: SizedPlatform): Promise<Measured[]> {
  const calls: readonly (readonly [name: string, call: () => Promise<unknown>])[] = [
    ["no credential (health)", () => platform.health()],
    ["get, key without scopes", () => platform.get()],
    ["get, key with scopes", () => platform.get(platform.keys.scoped)],
    ["get, key for some metadata", () => platform.get(platform.keys.metadata)],
    ["account, access token without scopes", () => platform.account(platform.keys.token)],
    ["account, access token with scopes", () => platform.account(platform.keys.scopedToken)],
  ];
  const samples = calls.map((): number[] => []);
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    for (const [at, [, call]] of calls.entries()) {
      const elapsed = await timed(call);
      if (round >= 0) samples[at]?.push(elapsed);
    }
  }
  return calls.map(([name], at) => [`${platform.kind}: ${name}`, "ms", samples[at] ?? []]);
}

async function inTurns(platforms: readonly SizedPlatform[], step: Step): Promise<number[][]> {
  const samples = platforms.map((): number[] => []);
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    for (const [at, platform] of platforms.entries()) {
      const elapsed = await step(platform);
      if (round >= 0) samples[at]?.push(elapsed);
    }
  }
  return samples;
}

function rowOf([name, unit, samples]: Measured): Row {
  return { name, unit, samples, ...distribution(samples) };
}
