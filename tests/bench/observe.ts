// What it costs to observe: creates with events recorded and without, the way of an event to a webhook, and pages of many events. Metrics and
// logs of sandboxes cannot be turned off, so they are in both figures of the creates.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { openPlatform } from "./api/sized-platform.ts";
import type { Bench, Measured } from "./bench.ts";
import { connection } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const CREATE_ROUNDS = 12;
const CREATES_AT_ONCE = 4;
const CREATES = 16;
const EVENTS_PER_SECOND = 100;
const SECONDS = 30;
const EVENTS = [1_000, 1_000_000] as const;
const PAGES = 200;
const WARM_UP = 20;

export const observe: Bench = {
  name: "observe",
  title: "Observing: creates with and without events, events to a webhook, pages of many events",
  async run() {
    const measured: Measured[] = [];
    const notes: string[] = [];
    for (const part of [creates, webhook, pages]) {
      const found = await part();
      measured.push(...found.measured);
      notes.push(...found.notes);
    }
    return { rows: measured.map(([name, unit, samples]) => ({ name, unit, ...distribution(samples), samples })), notes };
  },
};

interface Part {
  readonly measured: readonly Measured[];
  readonly notes: readonly string[];
}

const p50 = (samples: readonly number[]) => distribution(samples).p50;

/** On runc, where a create takes least time. The two platforms take turns. */
async function creates(): Promise<Part> {
  await using on = await startPlatform({ runtime: "runc", metrics: true });
  await using off = await startPlatform({ runtime: "runc", env: { SKERRY_EVENTS: "off" } });
  const rates: { on: number[]; off: number[] } = { on: [], off: [] };
  for (let round = -1; round < CREATE_ROUNDS; round += 1) {
    for (const [platform, found] of [
      [on, rates.on],
      [off, rates.off],
    ] as const) {
      const rate = await createsPerSecond(platform);
      if (round >= 0) found.push(rate);
    }
  }
  const ratio = p50(rates.on) / p50(rates.off);
  return {
    measured: [
      ["creates with events and metrics of the platform", "1/s", rates.on],
      ["creates without", "1/s", rates.off],
    ],
    notes: [`creates: ${ratio.toFixed(2)} times the rate without (bound 0.9)${ratio < 0.9 ? " MISSED" : ""}`],
  };
}

async function createsPerSecond(platform: Platform): Promise<number> {
  const made: Sandbox[] = [];
  const elapsed = await timed(async () => {
    const one = async () => {
      for (let at = 0; at < CREATES / CREATES_AT_ONCE; at += 1) made.push(await Sandbox.create("base", connection(platform)));
    };
    await Promise.all(Array.from({ length: CREATES_AT_ONCE }, one));
  });
  await Promise.all(made.map((sandbox) => sandbox.kill()));
  return CREATES / (elapsed / 1000);
}

/** Changes the timeout of a sandbox a hundred times a second. The receiver runs in this process. */
async function webhook(): Promise<Part> {
  await using stack = new AsyncDisposableStack();
  const platform = stack.use(await startPlatform({ runtime: "runc", env: { SKERRY_WEBHOOK_NETWORKS: "127.0.0.1" } }));
  const delays: number[] = [];
  const server = createServer(async (request, response) => {
    const { timestamp, type } = JSON.parse(await text(request)) as { timestamp: string; type: string };
    if (type === "sandbox.lifecycle.updated") delays.push(Date.now() - Date.parse(timestamp));
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const headers = { "X-API-Key": platform.secrets.apiKey, "Content-Type": "application/json" };
  const post = async (path: string, body: object) => {
    const response = await fetch(platform.apiUrl + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    await response.body?.cancel();
  };
  await post("/webhooks", { name: "bench", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
  const { sandboxId } = await Sandbox.create("base", { ...connection(platform), timeoutMs: 600_000 });
  const wanted = EVENTS_PER_SECOND * SECONDS;
  const startedAt = performance.now();
  const changes: Promise<void>[] = [];
  for (let at = 0; at < wanted; at += 1) {
    const dueIn = startedAt + (at * 1000) / EVENTS_PER_SECOND - performance.now();
    if (dueIn > 0) await sleep(dueIn);
    changes.push(post(`/sandboxes/${sandboxId}/timeout`, { timeout: 600 + (at % 2) }));
  }
  await Promise.all(changes);
  const took = (performance.now() - startedAt) / 1000;
  for (let waited = 0; delays.length < wanted && waited < 30_000; waited += 50) await sleep(50);
  const { p99 } = distribution(delays);
  const notes = [
    `webhook: ${delays.length} of ${wanted} events arrived, made in ${took.toFixed(1)} s; p99 ${p99.toFixed(0)} ms (bound 1000)${p99 < 1000 ? "" : " MISSED"}`,
  ];
  return { measured: [[`event to webhook, ${EVENTS_PER_SECOND} each second`, "ms", delays]], notes };
}

/** The platforms of both sizes are asked in turns. */
async function pages(): Promise<Part> {
  const measured: Measured[] = [];
  const notes: string[] = [];
  for (const kind of ["sqlite", "postgres"] as const) {
    await using stack = new AsyncDisposableStack();
    const platforms = [];
    for (const events of EVENTS) platforms.push(stack.use(await openPlatform(kind, { sandboxes: 1, events })));
    const ways = {
      "first page": "limit=100",
      "page of one type": "limit=100&types=sandbox.lifecycle.created",
      "page from the middle": `limit=100&after=${EVENTS[0] / 2}`,
      "events of one sandbox": "subjectID=i500",
    };
    for (const [name, query] of Object.entries(ways)) {
      const samples = platforms.map((): number[] => []);
      for (let round = -WARM_UP; round < PAGES; round += 1) {
        for (const [at, platform] of platforms.entries()) {
          const elapsed = await timed(async () => {
            if ((await platform.events(query)).length === 0) throw new Error(`there are no events for ${query}`);
          });
          if (round >= 0) samples[at]?.push(elapsed);
        }
      }
      for (const [at, events] of EVENTS.entries()) measured.push([`${kind}: ${name}, ${events} events`, "ms", samples[at] ?? []]);
      const ratio = p50(samples[1] ?? []) / p50(samples[0] ?? []);
      notes.push(`${kind}: ${name}: ${ratio.toFixed(2)} times with ${EVENTS[1]} events (bound 2)${ratio > 2 ? " MISSED" : ""}`);
    }
  }
  return { measured, notes };
}
