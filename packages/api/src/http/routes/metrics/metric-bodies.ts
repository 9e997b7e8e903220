import type { SandboxMetric } from "@skerry/store";
import { type Static, Type } from "typebox";
import type { TimeRange } from "../../../metrics/down-sample.ts";
import { DateTime, Int32 } from "../../schemas.ts";

const Seconds = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000_000_000, description }));
const Bytes = (description: string) => Type.Integer({ format: "int64", description });

export const RangeQuery = {
  start: Seconds("The beginning of the range, in seconds since 1970."),
  end: Seconds("The end of the range, in seconds since 1970. Default: now."),
};

export const MetricTimes = {
  timestamp: DateTime("When it was measured."),
  timestampUnix: Type.Integer({ format: "int64", description: "The same in seconds since 1970." }),
};

export const SandboxMetricSchema = Type.Object(
  {
    ...MetricTimes,
    cpuCount: Int32({ description: "Virtual CPUs." }),
    cpuUsedPct: Type.Number({ description: "Use of all CPUs together, 0 to 100." }),
    memUsed: Bytes("Memory in use, in bytes, without the cache."),
    memTotal: Bytes("Memory of the sandbox, in bytes."),
    memCache: Bytes("Memory with contents of files, in bytes. The kernel reclaims it when it is needed."),
    diskUsed: Bytes("Used disk space, in bytes."),
    diskTotal: Bytes("Size of the disk, in bytes."),
  },
  { title: "SandboxMetric" },
);

export function timesOf(at: number): { timestamp: string; timestampUnix: number } {
  return { timestamp: new Date(at).toISOString(), timestampUnix: Math.floor(at / 1000) };
}

export function encodeMetric(metric: SandboxMetric): Static<typeof SandboxMetricSchema> {
  return {
    ...timesOf(metric.at),
    cpuCount: metric.cpuCount,
    cpuUsedPct: metric.cpuPercent,
    memUsed: metric.memoryUsedBytes,
    memTotal: metric.memoryTotalBytes,
    memCache: metric.memoryCacheBytes,
    diskUsed: metric.diskUsedBytes,
    diskTotal: metric.diskTotalBytes,
  };
}

/** In milliseconds. The last second belongs to the range. Returns undefined when it ends before it starts. */
export function rangeOf({ start, end }: { readonly start?: number; readonly end?: number }): Partial<TimeRange> | undefined {
  if (start !== undefined && end !== undefined && start > end) return undefined;
  return { ...(start === undefined ? {} : { start: start * 1000 }), ...(end === undefined ? {} : { end: end * 1000 + 999 }) };
}
