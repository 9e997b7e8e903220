import { printable } from "./text.ts";

const LEVELS: Readonly<Record<number, string>> = { 10: "trace", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal" };
const SHOWN_ELSEWHERE = new Set(["level", "time", "component", "msg", "pid", "hostname"]);

/** Formats one line of the platform's JSON log for people. A line that is not JSON is returned as it is. */
export function formatLogLine(line: string): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
    if (typeof entry !== "object" || entry === null) return printable(line);
  } catch {
    return printable(line);
  }
  const time = typeof entry.time === "string" ? entry.time.slice(11, 23) : "";
  const level = LEVELS[Number(entry.level)] ?? String(entry.level ?? "");
  const facts = Object.entries(entry)
    .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) => `${name}=${formatFact(value)}`);
  return printable([time, level.padEnd(5), `${entry.component ?? ""}:`, String(entry.msg ?? ""), ...facts].join(" "));
}

function formatFact(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    const stack = (value as { stack?: unknown }).stack;
    return typeof stack === "string" ? `\n    ${stack.replaceAll("\n", "\n    ")}` : JSON.stringify(value);
  }
  return String(value);
}
