import { setTimeout as sleep } from "node:timers/promises";
import type { PlatformClient } from "./platform-client.ts";

export interface BuildIds {
  readonly templateId: string;
  readonly buildId: string;
}

export interface BuildLogEntry {
  readonly timestamp: string;
  readonly message: string;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly step?: string;
}

interface BuildStatus {
  readonly status: "waiting" | "building" | "ready" | "error";
  readonly logEntries: readonly BuildLogEntry[];
  readonly reason?: { readonly message: string; readonly step?: string };
}

export type BuildEnd = { readonly status: "ready" } | { readonly status: "error"; readonly message: string; readonly step: string };

const POLL_MS = 50;

/** Reads the log of a build until it has ended. */
export async function followBuild(
  client: PlatformClient,
  ids: BuildIds,
  options: { readonly signal: AbortSignal; readonly onEntry: (entry: BuildLogEntry) => void },
): Promise<BuildEnd> {
  const { signal, onEntry } = options;
  const path = `/templates/${ids.templateId}/builds/${ids.buildId}/status`;
  for (let offset = 0; ; ) {
    const { status, logEntries, reason } = await client.call<BuildStatus>("GET", `${path}?logsOffset=${offset}`, { signal });
    for (const entry of logEntries) onEntry(entry);
    offset += logEntries.length;
    if (logEntries.length > 0) continue;
    if (status === "ready") return { status };
    if (status === "error") return { status, message: reason?.message ?? "the platform gives no reason", step: reason?.step ?? "" };
    await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
