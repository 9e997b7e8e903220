// The metrics of a node.

import { counter, histogram, observedCounter, observedGauge } from "@skerry/telemetry";

export const operationDuration = histogram({
  name: "skerry_node_operation_duration_seconds",
  help: "Duration of operations on sandboxes on this node, in seconds. Claim: a create from the pool. Start: any other create or resume.",
  labels: ["operation"],
});

export const phaseDuration = histogram({
  name: "skerry_node_phase_duration_seconds",
  help: "Duration of the phases of operations on this node, in seconds. A start is a boot, or a restore from memory.",
  labels: ["operation", "phase"],
});

export const starts = counter({
  name: "skerry_node_starts_total",
  help: "Boots and restores on this node, by result. Includes those for the pool and for builds.",
  labels: ["kind", "result"],
});

export const poolClaims = counter({
  name: "skerry_node_pool_claims_total",
  help: "Creates that found a ready sandbox in the pool (hit), or none (miss).",
  labels: ["result"],
});

export const poolReady = observedGauge({
  name: "skerry_node_pool_ready_sandboxes",
  help: "Ready sandboxes in the pool.",
});

export const gateWait = histogram({
  name: "skerry_node_start_queue_wait_seconds",
  help: "How long starts wait for their turn, in seconds.",
});

export const gateRefusals = counter({
  name: "skerry_node_start_queue_refusals_total",
  help: "Starts that were refused because too many wait, or because their turn did not come in time.",
});

export const gateStarts = observedGauge({
  name: "skerry_node_start_queue_starts",
  help: "Starts under way (running) and in the queue (waiting), and how many may be under way (limit).",
  labels: ["state"],
});

export const sandboxes = observedGauge({
  name: "skerry_node_sandboxes",
  help: "Sandboxes that run on this node, without those of the pool and of builds.",
});

export const images = observedGauge({
  name: "skerry_node_images",
  help: "Images on this node, by kind: paused sandboxes (pause), snapshots, templates.",
  labels: ["kind"],
});

export const damagedImages = observedGauge({
  name: "skerry_node_damaged_images",
  help: "Images whose record cannot be read.",
});

export const readySlots = observedGauge({
  name: "skerry_node_ready_network_slots",
  help: "Prepared network slots.",
});

export const builds = observedGauge({
  name: "skerry_node_builds",
  help: "Builds that this node carries out (running), and how many it may (limit).",
  labels: ["state"],
});

export const cpus = observedGauge({
  name: "skerry_node_cpus",
  help: "Processors of the host.",
});

export const busySeconds = observedCounter({
  name: "skerry_node_cpu_busy_seconds_total",
  help: "Time that the processors of the host were busy, in seconds.",
});

export const memory = observedGauge({
  name: "skerry_node_memory_bytes",
  help: "Memory of the host, in bytes: all of it (total), and what programs could still get (available).",
  labels: ["kind"],
});

export const disk = observedGauge({
  name: "skerry_node_disk_bytes",
  help: "The disk of the data folder, in bytes: all of it (total), and what is free.",
  labels: ["kind"],
});
