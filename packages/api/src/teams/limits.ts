// What can be limited for a team: its names for callers, its settings, and its texts.

import type { LimitName } from "@skerry/store";

/** Null: no limit. */
export type Limits = Readonly<Record<LimitName, number | null>>;

export interface LimitAbout {
  /** The name for callers. */
  readonly shown: string;
  /** The setting that gives its value to teams without a tier. */
  readonly setting: string;
  readonly what: string;
  readonly min: number;
  readonly max: number;
  /** Without the setting. */
  readonly fallback: number | null;
}

const MANY = 1_000_000_000;

export const LIMITS: Readonly<Record<LimitName, LimitAbout>> = {
  sandboxes: {
    shown: "sandboxes",
    setting: "MAX_SANDBOXES",
    what: "Sandboxes that run at the same time.",
    min: 0,
    max: 1_000_000,
    fallback: 1000,
  },
  cpu: { shown: "cpu", setting: "MAX_TEAM_CPU", what: "Virtual CPUs of all running sandboxes.", min: 0, max: MANY, fallback: null },
  memoryMb: {
    shown: "memoryMB",
    setting: "MAX_TEAM_MEMORY_MB",
    what: "Memory of all running sandboxes, in MiB.",
    min: 0,
    max: MANY,
    fallback: null,
  },
  diskMb: {
    shown: "diskMB",
    setting: "MAX_TEAM_DISK_MB",
    what: "Disk sizes of all running and paused sandboxes, in MiB.",
    min: 0,
    max: MANY,
    fallback: null,
  },
  sandboxCpu: { shown: "sandboxCpu", setting: "MAX_SANDBOX_CPU", what: "Virtual CPUs of a sandbox.", min: 1, max: 32, fallback: 32 },
  sandboxMemoryMb: {
    shown: "sandboxMemoryMB",
    setting: "MAX_SANDBOX_MEMORY_MB",
    what: "Memory of a sandbox, in MiB.",
    min: 128,
    max: 65_536,
    fallback: 65_536,
  },
  sandboxDiskMb: {
    shown: "sandboxDiskMB",
    setting: "MAX_SANDBOX_DISK_MB",
    what: "Disk size of a sandbox, in MiB.",
    min: 1024,
    max: 102_400,
    fallback: 102_400,
  },
  sandboxBandwidthMbps: {
    shown: "sandboxBandwidthMbps",
    setting: "MAX_SANDBOX_BANDWIDTH_MBPS",
    what: "What a sandbox may send and receive, each, in 10^6 bits per second.",
    min: 1,
    max: 100_000,
    fallback: null,
  },
  sandboxConnections: {
    shown: "sandboxConnections",
    setting: "MAX_SANDBOX_OUTGOING_CONNECTIONS",
    what: "Connections of a sandbox to the outside at the same time.",
    min: 1,
    max: 1_000_000,
    fallback: 8192,
  },
  timeoutHours: {
    shown: "timeoutHours",
    setting: "MAX_TIMEOUT_HOURS",
    what: "Hours that a sandbox may run from its start or its last resume.",
    min: 1,
    max: 24 * 365,
    fallback: 24,
  },
  builds: {
    shown: "builds",
    setting: "MAX_BUILDS",
    what: "Template builds that are queued or run at the same time.",
    min: 0,
    max: 10_000,
    fallback: 20,
  },
  snapshots: { shown: "snapshots", setting: "MAX_SNAPSHOTS", what: "Snapshots.", min: 0, max: MANY, fallback: null },
  volumes: { shown: "volumes", setting: "MAX_VOLUMES", what: "Volumes.", min: 0, max: MANY, fallback: null },
  volumeMb: {
    shown: "volumeMB",
    setting: "MAX_TEAM_VOLUME_MB",
    what: "Sizes of all volumes, in MiB.",
    min: 0,
    max: MANY,
    fallback: null,
  },
  requestsPerSecond: {
    shown: "requestsPerSecond",
    setting: "MAX_REQUESTS_PER_SECOND",
    what: "Requests per second to one operation of the API, in each API process.",
    min: 1,
    max: 1_000_000,
    fallback: null,
  },
};

/** Sandboxes may not be larger, whatever the limits of their team are. */
export const LARGEST_SANDBOX = {
  cpuCount: LIMITS.sandboxCpu.max,
  memoryMb: LIMITS.sandboxMemoryMb.max,
  diskSizeMb: LIMITS.sandboxDiskMb.max,
} as const;

export function limitEntries(): readonly (readonly [LimitName, LimitAbout])[] {
  return Object.entries(LIMITS) as [LimitName, LimitAbout][];
}

/** The limits of a platform without settings. */
export const DEFAULT_LIMITS: Limits = Object.fromEntries(limitEntries().map(([name, { fallback }]) => [name, fallback])) as Limits;
