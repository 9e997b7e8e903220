// What this process uses, under the names that dashboards for Node.js and other programs expect.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { addTo, observedCounter, observedGauge } from "./metric-registry.ts";
import { addHeapSize, addMaxFiles, addOpenFiles, addProcessMemory, addStartTime } from "./prom-client.ts";

/** Interval of the measurements of the event loop. A shorter one wakes an idle process often. */
const LOOP_RESOLUTION_MS = 100;

for (const add of [addStartTime, addOpenFiles, addMaxFiles, addProcessMemory, addHeapSize]) addTo(add);

const cpuSeconds = observedCounter({ name: "process_cpu_seconds_total", help: "CPU time of this process, in seconds." });
const loopLag = observedGauge({
  name: "nodejs_eventloop_lag_p99_seconds",
  help: "99th percentile of the delay of the event loop since the last reading, in seconds.",
});
const buildInfo = observedGauge({
  name: "skerry_build_info",
  help: "1, with the version of this process and its roles.",
  labels: ["version", "roles"],
});

/** Begins to measure this process. Returns a function that ends it. */
export function measureProcess(about: { readonly version: string; readonly roles: readonly string[] }): () => void {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  delay.enable();
  const stops = [
    cpuSeconds.observe(() => {
      const { user, system } = process.cpuUsage();
      return [{ value: (user + system) / 1e6 }];
    }),
    loopLag.observe(() => {
      const value = delay.percentile(99) / 1e9;
      delay.reset();
      // The interval itself is part of what was measured.
      return [{ value: Math.max(0, value - LOOP_RESOLUTION_MS / 1000) }];
    }),
    buildInfo.observe(() => [{ value: 1, labels: { version: about.version, roles: about.roles.join(",") } }]),
    () => delay.disable(),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
