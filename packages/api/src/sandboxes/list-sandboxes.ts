import type { SandboxFilter, SandboxPage, Team } from "@skerry/store";
import { type Page, pageOf } from "../page.ts";
import type { TemplateReference } from "../templates/reference.ts";
import type { SandboxDeps } from "./deps.ts";
import type { ShownSandbox } from "./shown-sandbox.ts";

export interface SandboxQuery extends SandboxPage {
  readonly states: ReadonlySet<"running" | "paused">;
  readonly metadata: Readonly<Record<string, string>>;
  /** Inclusive. */
  readonly startedFrom: number | undefined;
  readonly template: TemplateReference | undefined;
}

export interface SandboxList extends Page<ShownSandbox> {
  /** Running sandboxes that match, on all pages. Undefined when the query excludes running sandboxes. */
  readonly totalRunning: number | undefined;
}

export async function listSandboxes(deps: SandboxDeps, team: Team, query: SandboxQuery): Promise<SandboxList> {
  const { sandboxes } = deps.store;
  const { states, metadata, startedFrom, order, limit, after } = query;
  const wantsRunning = states.has("running");
  const template = query.template && (await deps.templates.find(team, query.template));
  if (query.template && !template) return { items: [], last: undefined, totalRunning: wantsRunning ? 0 : undefined };
  const filter: SandboxFilter = {
    teamId: team.id,
    metadata,
    ...(startedFrom === undefined ? {} : { startedFrom }),
    ...(template ? { templateId: template.id } : {}),
  };
  const listed = states.size > 1 ? {} : { listed: wantsRunning ? ("running" as const) : ("paused" as const) };
  const [rows, totalRunning] = await Promise.all([
    sandboxes.list({ ...filter, ...listed }, { order, limit: limit + 1, ...(after ? { after } : {}) }),
    wantsRunning ? sandboxes.count({ ...filter, listed: "running" }) : undefined,
  ]);
  return { ...pageOf(rows as readonly ShownSandbox[], limit), totalRunning };
}

export interface RunningQuery {
  readonly teamId: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly max: number;
}

/** All running sandboxes, newest first; undefined when more than `max` match. */
export async function listAllRunning(
  deps: SandboxDeps,
  { teamId, metadata, max }: RunningQuery,
): Promise<readonly ShownSandbox[] | undefined> {
  const { sandboxes } = deps.store;
  const filter = { teamId, listed: "running" as const, metadata };
  // Counted before anything is read: refusing should cost little.
  if ((await sandboxes.count(filter)) > max) return undefined;
  return (await sandboxes.list(filter, { order: "desc", limit: max })) as readonly ShownSandbox[];
}
