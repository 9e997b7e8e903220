import { afterAll, beforeAll, expect, it } from "vitest";
import { listenMetrics, type MetricsListener } from "./listen-metrics.ts";
import { measureProcess } from "./process-metrics.ts";

let listener: MetricsListener;
let stop: () => void;
beforeAll(async () => {
  stop = measureProcess({ version: "1.2.3", roles: ["api", "edge"] });
  listener = await listenMetrics({ host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  stop();
  await listener.close();
});

const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${listener.port}${path}`, init);

it("serves the metrics in the format of Prometheus", async () => {
  const response = await ask("/metrics");
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  expect(text).toContain('skerry_build_info{version="1.2.3",roles="api,edge"} 1\n');
  expect(text).toMatch(/^process_cpu_seconds_total \d+\.\d+$/m);
  expect(text).toMatch(/^process_resident_memory_bytes [1-9]\d+$/m);
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
});

it("answers nothing else", async () => {
  const statuses = await Promise.all(
    [
      ask("/"),
      ask("/metrics/x"),
      ask("/metrics", { method: "POST", body: "x" }),
      ask("/metrics", { method: "HEAD" }),
      ask("/metrics?a=b"),
    ].map(async (response) => (await response).status),
  );
  expect(statuses).toEqual([404, 404, 405, 200, 200]);
});

it("rejects when the port is taken", async () => {
  await expect(listenMetrics({ host: "127.0.0.1", port: listener.port })).rejects.toThrow("EADDRINUSE");
});
