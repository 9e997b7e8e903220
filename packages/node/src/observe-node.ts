import { availableParallelism, cpus as readCpus, totalmem } from "node:os";
import { availableMemoryBytes } from "@skerry/runtime";
import type { Builds } from "./builds/builds.ts";
import type { NodeConfig } from "./config.ts";
import type { ContainersOptions } from "./containers/containers.ts";
import { readDiskSpace } from "./disk/disk-space.privileged.ts";
import type { ImageStore } from "./images/image-store.privileged.ts";
import * as metrics from "./metrics.ts";
import type { WarmPool } from "./pool/warm-pool.ts";
import type { Sandboxes } from "./sandboxes/sandboxes.ts";
import type { StartGate } from "./sandboxes/start-gate.ts";

export interface ObservedNode {
  readonly config: NodeConfig;
  readonly sandboxes: Sandboxes;
  readonly images: ImageStore;
  readonly pools: ContainersOptions["pools"];
  readonly warmPool: WarmPool;
  readonly gate: StartGate;
  readonly builds: Builds;
}

/** Shows what the node has and uses as metrics. All of it is known or read in microseconds. Returns a function that ends it. */
export function observeNode({ config, sandboxes, images, pools, warmPool, gate, builds }: ObservedNode): () => void {
  const stops = [
    metrics.sandboxes.observe(() => [{ value: sandboxes.list().length }]),
    metrics.images.observe(() => {
      const counts = { pause: 0, snapshot: 0, template: 0 };
      for (const { kind } of images.list()) counts[kind]++;
      return Object.entries(counts).map(([kind, value]) => ({ value, labels: { kind } }));
    }),
    metrics.damagedImages.observe(() => [{ value: images.damaged.size }]),
    metrics.readySlots.observe(() => [{ value: pools.plain.readyCount + pools.withUserNamespace.readyCount }]),
    metrics.poolReady.observe(() => [{ value: warmPool.readyCount }]),
    metrics.gateStarts.observe(() => byState(gate.counts)),
    metrics.builds.observe(() => byState({ running: builds.runningCount, limit: config.builds?.most ?? 0 })),
    metrics.cpus.observe(() => [{ value: availableParallelism() }]),
    metrics.busySeconds.observe(() => [{ value: readBusySeconds() }]),
    metrics.memory.observe(() => byKind({ total: totalmem(), available: availableMemoryBytes() })),
    metrics.disk.observe(() => {
      const { totalBytes, freeBytes } = readDiskSpace(config.dir);
      return byKind({ total: totalBytes, free: freeBytes });
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function byState(counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([state, value]) => ({ value, labels: { state } }));
}

function byKind(counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([kind, value]) => ({ value, labels: { kind } }));
}

function readBusySeconds(): number {
  return readCpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1000;
}
