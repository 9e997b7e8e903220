import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { clientUrls, dataDirOf, dataFolder, OperatorError, readSecrets, readSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";
import { printable } from "../terminal/text.ts";

export interface AuditOptions {
  readonly data?: string;
  readonly json?: boolean;
  readonly team?: string;
  readonly outcome?: string;
  readonly actor?: string;
  readonly since: string;
}

interface Line {
  readonly timestamp: string;
  readonly outcome: string;
  readonly status?: number;
  readonly reason?: string;
  readonly operation?: string;
  readonly subject_id?: string;
  readonly made_ids?: readonly string[];
  readonly actor: { readonly type: string; readonly id?: string };
  readonly credential?: { readonly mask: string };
  readonly address?: string;
  readonly count: number;
}

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Prints the audit log of the platform, the oldest line first. */
export async function audit(context: OperatorContext, options: AuditOptions): Promise<void> {
  requireRoot("audit");
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const settings = await readSettings(folder);
  if (!settings) throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning" });
  const { adminToken } = await readSecrets(folder);
  const { team: teamID, outcome, actor } = options;
  const filters = { teamID, outcome, actor, start: new Date(Date.now() - durationOf(options.since)).toISOString() };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
  const { api } = clientUrls(settings);
  const response = await fetch(`${api}/admin/audit/export?${query}`, { headers: { "X-Admin-Token": adminToken } }).catch(
    (cause: unknown) => {
      throw new OperatorError(`the platform does not answer at ${api}`, {
        exit: "notRunning",
        hints: ["To start it, run ./skerry up."],
        cause,
      });
    },
  );
  if (!response.ok || !response.body)
    throw new OperatorError(`the platform answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  // A reader such as `head` may close the pipe first.
  process.stdout.once("error", () => process.exit(0));
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as never) })) {
    process.stdout.write(`${options.json ? line : formatLine(JSON.parse(line) as Line)}\n`);
  }
}

function durationOf(text: string): number {
  const match = /^(\d{1,6})([mhd])$/.exec(text);
  if (!match) throw new OperatorError(`invalid time "${text}": --since takes a number with m, h or d, such as 24h`, { exit: "usage" });
  return Number(match[1]) * (UNITS_MS[match[2] ?? ""] ?? 0);
}

function formatLine(line: Line): string {
  const who = line.credential?.mask ?? [line.actor.type, line.actor.id].filter(Boolean).join(":");
  const what = [line.operation ?? "several operations", line.subject_id, line.made_ids && `→ ${line.made_ids.join(",")}`];
  const ended = [line.outcome, line.status, line.reason];
  const parts = [
    line.timestamp,
    ...ended,
    ...what,
    "by",
    who,
    line.address && `from ${line.address}`,
    line.count > 1 ? `(${line.count} times)` : "",
  ];
  return printable(parts.filter((part) => part !== undefined && part !== "").join(" "));
}
