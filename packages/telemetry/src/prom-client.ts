// The parts of prom-client that are used here. Its main module also loads the OpenTelemetry API, for the metrics that it adds by itself:
// 10 MB of memory in every process, also in one that sends no traces. They are imported, not required, so that a bundle contains them.

import type * as PromClient from "prom-client";
import counter from "prom-client/lib/counter.js";
import gauge from "prom-client/lib/gauge.js";
import histogram from "prom-client/lib/histogram.js";
import heapSize from "prom-client/lib/metrics/heapSizeAndUsed.js";
import processMemory from "prom-client/lib/metrics/osMemoryHeap.js";
import maxFiles from "prom-client/lib/metrics/processMaxFileDescriptors.js";
import openFiles from "prom-client/lib/metrics/processOpenFileDescriptors.js";
import startTime from "prom-client/lib/metrics/processStartTime.js";
import registry from "prom-client/lib/registry.js";

export const Registry = registry as typeof PromClient.Registry;
export const Counter = counter as typeof PromClient.Counter;
export const Gauge = gauge as typeof PromClient.Gauge;
export const Histogram = histogram as typeof PromClient.Histogram;

/** Adds metrics of prom-client to a registry. */
export type AddMetrics = (registry: PromClient.Registry) => void;

export const addStartTime = startTime as AddMetrics;
export const addOpenFiles = openFiles as AddMetrics;
export const addMaxFiles = maxFiles as AddMetrics;
export const addProcessMemory = processMemory as AddMetrics;
export const addHeapSize = heapSize as AddMetrics;
