// Shows what the database knows about the whole platform as metrics. A reading is used for some seconds, so that no number of scrapes costs
// the database anything.

import type { Clock } from "@skerry/base";
import type { NodeLoad, Store } from "@skerry/store";
import type { Sample } from "@skerry/telemetry";
import { builds, eventLag, nodes, placedCpus, placedMemory, placedSandboxes, webhookBehind, webhookPending } from "../metrics.ts";
import type { Nodes } from "../nodes/nodes.ts";

const FRESH_MS = 5_000;
const MIB = 1024 * 1024;

export interface ObservedPlatform {
  readonly store: Pick<Store, "builds" | "events" | "nodes" | "webhooks">;
  readonly nodes: Nodes;
  readonly clock: Clock;
}

/** Returns a function that ends it. */
export function observePlatform({ store, nodes: known, clock }: ObservedPlatform): () => void {
  const loads = keepFor(FRESH_MS, () => store.nodes.loads());
  const building = keepFor(FRESH_MS, () => store.builds.countBuilding());
  const queue = keepFor(FRESH_MS, () => store.webhooks.deliveries.queue());
  const lagMs = keepFor(FRESH_MS, () => store.events.lagMs(clock.now()));
  const byNode = async (read: (load: NodeLoad) => number): Promise<readonly Sample<"node">[]> =>
    [...(await loads())].map(([node, load]) => ({ value: read(load), labels: { node } }));
  const stops = [
    nodes.observe(() => {
      const all = known.list();
      const silent = all.filter(({ nodeId }) => known.silentSince(nodeId) !== undefined).length;
      return samplesOf({ answering: all.length - silent, silent });
    }),
    placedSandboxes.observe(async () =>
      [...(await loads())].flatMap(([node, { starting, sandboxes }]) => [
        { value: starting, labels: { node, state: "starting" } },
        { value: sandboxes, labels: { node, state: "running" } },
      ]),
    ),
    placedCpus.observe(() => byNode(({ cpuCount }) => cpuCount)),
    placedMemory.observe(() => byNode(({ memoryMb }) => memoryMb * MIB)),
    builds.observe(async () => samplesOf({ ...(await building()) })),
    eventLag.observe(async () => [{ value: (await lagMs()) / 1000 }]),
    webhookPending.observe(async () => [{ value: (await queue()).pending }]),
    webhookBehind.observe(async () => [{ value: (await queue()).behind }]),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function samplesOf(counts: Readonly<Record<string, number>>): readonly Sample<"state">[] {
  return Object.entries(counts).map(([state, value]) => ({ value, labels: { state } }));
}

/** Callers share one reading for this long. A reading that failed is not kept. */
function keepFor<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let kept: { readonly at: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (kept && performance.now() - kept.at < ms) return kept.value;
    const reading = { at: performance.now(), value: read() };
    kept = reading;
    reading.value.catch(() => {
      if (kept === reading) kept = undefined;
    });
    return reading.value;
  };
}
