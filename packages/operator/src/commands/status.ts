import { dataDirOf, dataFolder, EXIT_CODES } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { readStatus, type Status, type Use } from "../status/read-status.ts";
import { formatDuration, painter, printable } from "../terminal/text.ts";

const GIB = 1024 ** 3;

/** Prints the state of the platform. Exit code 0 when it answers, 3 when it is not running, 1 when it runs but does not answer. */
export async function status(context: OperatorContext, options: { data?: string; json?: boolean }): Promise<void> {
  const state = await readStatus(context, dataFolder(dataDirOf(options.data, context.env)));
  process.stdout.write(options.json ? `${JSON.stringify(state, null, 2)}\n` : formatStatus(state));
  if (!state.running) process.exitCode = EXIT_CODES.notRunning.code;
  else if (!state.healthy) process.exitCode = EXIT_CODES.failed.code;
}

function formatStatus(state: Status): string {
  const paint = painter(process.stdout);
  const headline = state.healthy
    ? paint("good", "running")
    : state.running
      ? paint("bad", "running, but the API does not answer")
      : paint("warn", "not running");
  const { platform } = state;
  const rows: [string, string | number | null][] = [
    ["Skerry", `${headline}, version ${state.version}`],
    ["process", processOf(state)],
    ["API", state.running ? state.api : null],
    ["edge", state.running ? state.sandboxes : null],
    [
      "TLS",
      state.running && state.tls
        ? `${state.tls}${state.certificateUntil ? `, valid until ${state.certificateUntil.slice(0, 10)}` : ""}`
        : null,
    ],
    ["sandboxes", platform && countsOf(platform.sandboxes)],
    ...(platform?.nodes ?? []).map((node): [string, string] => ["node", nodeOf(node)]),
    ["builds", platform && countsOf(platform.builds)],
    ["database", state.database && `${state.database}${platform ? `, answers in ${platform.databaseMs.toFixed(1)} ms` : ""}`],
    [
      "events",
      platform &&
        `${platform.eventLagMs === 0 ? "no lag" : `lag ${formatDuration(platform.eventLagMs)}`}, ${webhooksOf(platform.webhooks)}`,
    ],
    ["memory", useOf(state.memory)],
    ["disk", state.disk && useOf(state.disk)],
    ["runtime", state.runtime],
    ["runsc", state.runsc],
    ["agent", state.agent],
    ["base template", state.baseTemplate],
    ["data folder", state.dataDir],
  ];
  const lines = rows.filter(([, value]) => value !== null).map(([name, value]) => `${name.padEnd(14)} ${value}`);
  for (const { time, message, error } of state.lastErrors) {
    lines.push(`${"last error".padEnd(14)} ${printable([time, message, ...(error === null ? [] : [error])].join("  "))}`);
  }
  if (!state.running) lines.push("", "To start it, run ./skerry up.");
  return `${lines.join("\n")}\n`;
}

function processOf({ pid, roles, platform }: Status): string | null {
  if (pid === null) return null;
  const facts = platform ? `, ${Math.round(platform.memoryBytes / 1024 ** 2)} MiB, up ${formatDuration(platform.uptimeMs)}` : "";
  return `${pid} (${(roles ?? "").replaceAll(",", ", ")})${facts}`;
}

/** "3 running, 2 paused". */
function countsOf(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

/** "host-1a2b, ready: 3 sandboxes ready in the pool, 1 starting, 0 in the queue". */
function nodeOf({
  nodeId,
  status,
  readySandboxes,
  startsRunning,
  startsWaiting,
}: NonNullable<Status["platform"]>["nodes"][number]): string {
  const about = `${printable(nodeId)}, ${status}`;
  if (readySandboxes === null) return about;
  return `${about}: ${readySandboxes} ready in the pool, ${startsRunning} starting, ${startsWaiting} in the queue`;
}

function webhooksOf({ enabled, failing, disabled }: NonNullable<Status["platform"]>["webhooks"]): string {
  return `${enabled} webhooks${failing > 0 ? `, ${failing} of them failing` : ""}${disabled > 0 ? `, ${disabled} disabled` : ""}`;
}

function useOf({ usedBytes, totalBytes }: Use): string {
  return `${(usedBytes / GIB).toFixed(1)} of ${(totalBytes / GIB).toFixed(1)} GiB used`;
}
