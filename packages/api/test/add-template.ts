import { randomBytes, randomUUID } from "node:crypto";
import type { Build, BuildStatus } from "@skerry/store";
import type { ApiHarness } from "./api-harness.ts";

export interface TemplateSetup {
  readonly alias: string;
  /** Default: the team of the harness. */
  readonly team?: "default" | "other";
  /** Default: one ready build with the default tag. Later builds are newer. */
  readonly builds?: readonly { readonly status?: BuildStatus; readonly tag?: string; readonly cpuCount?: number }[];
  readonly isDefault?: boolean;
  readonly description?: string;
}

/** Adds a template to the database, as builds leave it there. */
export async function addTemplate(
  api: ApiHarness,
  setup: TemplateSetup,
): Promise<{ readonly id: string; readonly builds: readonly Build[] }> {
  const { store } = api;
  const { alias, team: slug = "default", builds = [{}] } = setup;
  const team = await store.identity.findTeamBySlug(slug);
  if (!team) throw new Error(`there is no team ${slug}`);
  const id = randomBytes(10).toString("hex");
  const { isDefault = false, description } = setup;
  await store.templates.putTemplate({ id, teamId: team.id, isPublic: false, isDefault, description, now: nextTime() });
  // Older than any name that the API adds, whose clock may be behind this process's.
  await store.templates.putAlias({ namespace: slug, alias, templateId: id, now: 1 });
  const added: Build[] = [];
  for (const { status = "ready", tag = "default", cpuCount = 2 } of builds) {
    const build = newBuild(id, { status, cpuCount, createdAt: nextTime() });
    await store.templates.addBuild(build, tag);
    added.push(build);
  }
  return { id, builds: added };
}

function newBuild(templateId: string, fields: Partial<Build>): Build {
  return {
    id: randomUUID(),
    templateId,
    status: "ready",
    cpuCount: 2,
    memoryMb: 512,
    diskSizeMb: 0,
    layers: [`sha256:${"b".repeat(64)}`],
    defaultUser: "user",
    defaultWorkdir: "/home/user",
    agentVersion: "",
    createdAt: 0,
    image: null,
    ...fields,
  };
}

let lastTime = 0;

/** A time that no earlier call returned, so that the order of what is added is certain. */
function nextTime(): number {
  lastTime = Math.max(lastTime + 1, Date.now());
  return lastTime;
}
