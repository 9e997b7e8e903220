// What callers ask about builds: requesting, starting and reading them. `BuildScheduler` carries them out.

import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "@skerry/base";
import type {
  BuildEntry,
  BuildFileRepository,
  BuildLogLine,
  BuildLogRepository,
  BuildLogWindow,
  BuildRepository,
  BuildRequest,
  BuildRequestStep,
  SandboxSize,
  StartedBuild,
  Team,
  Template,
  TemplateRepository,
} from "@skerry/store";
import { imageIdFrom, isUuid } from "@skerry/wire";
import { invalid, publicError } from "../errors.ts";
import type { TeamLimits } from "../teams/team-limits.ts";
import { claimError } from "../templates/claim-error.ts";
import { type GivenName, tagsOfBuild } from "../templates/template-name.ts";
import { buildSizeOf, type GivenSize } from "./build-size.ts";
import type { RegistryCredentials } from "./build-spec.ts";
import { CANCELLED, SUPERSEDED_WAITING } from "./reasons.ts";
import type { BuildScheduler } from "./scheduler.ts";

export interface BuildServiceDeps {
  readonly builds: BuildRepository;
  readonly buildLogs: BuildLogRepository;
  readonly buildFiles: BuildFileRepository;
  readonly templates: TemplateRepository;
  readonly scheduler: BuildScheduler;
  readonly limits: TeamLimits;
  readonly clock: Clock;
}

export interface RequestedBuild {
  readonly template: Template;
  readonly buildId: string;
  readonly tags: readonly string[];
  readonly buildCount: number;
}

export interface NewBuildRequest {
  readonly team: Team;
  /** Absent for another build of the template `templateId`. */
  readonly name?: GivenName;
  readonly templateId?: string;
  readonly tags?: readonly string[];
  readonly size: SandboxSize;
}

/** A step as a client gives it: the files are named by their hash. */
export type GivenStep = Omit<BuildRequestStep, "archive">;

export interface BuildStart extends Omit<BuildRequest, "steps" | "source"> {
  readonly source:
    | { readonly kind: "image"; readonly reference: string; readonly credentials: RegistryCredentials | undefined }
    | { readonly kind: "template"; readonly reference: string };
  readonly steps: readonly GivenStep[];
  /** The client reads the log as strings. */
  readonly isLegacy: boolean;
}

/** What may be the id of a template. PostgreSQL refuses some other texts. */
export const TEMPLATE_ID = /^[a-z0-9]{1,64}$/;

export class BuildService {
  readonly #deps: BuildServiceDeps;
  constructor(deps: BuildServiceDeps) {
    this.#deps = deps;
  }

  /** The size of a build of the team. Throws when it is not allowed. */
  async sizeOf(team: Team, given: GivenSize): Promise<SandboxSize> {
    return buildSizeOf(given, await this.#deps.limits.largestSandbox(team.id));
  }

  /** Registers a build, and its template when there is none of this name yet. The build waits to be started. */
  async request({ team, name, templateId, tags, size }: NewBuildRequest): Promise<RequestedBuild> {
    const { builds, limits, clock } = this.#deps;
    if (templateId !== undefined && !TEMPLATE_ID.test(templateId)) throw claimError({ kind: "not-found" }, { templateId });
    const all = tagsOfBuild(name ?? { alias: "", tag: undefined }, tags);
    const buildId = randomUUID();
    const registered = await limits.admitBuild(team.id, (maxBuilds) =>
      builds.register({
        claim: {
          teamId: team.id,
          ...(name === undefined ? {} : { alias: { namespace: team.slug, alias: name.alias } }),
          ...(templateId === undefined ? {} : { templateId }),
          newId: imageIdFrom(randomBytes),
          now: clock.now(),
        },
        build: { id: buildId, ...size },
        tags: all,
        maxBuilds,
        superseded: SUPERSEDED_WAITING,
      }),
    );
    if (registered.kind !== "registered") {
      throw claimError(registered, { ...(name && { alias: name.alias }), ...(templateId === undefined ? {} : { templateId }) });
    }
    return { template: registered.template, buildCount: registered.buildCount, buildId, tags: all };
  }

  /** Starts a waiting build. It is carried out in the background. */
  async start(job: BuildEntry, start: BuildStart): Promise<void> {
    const { builds, limits, clock, scheduler } = this.#deps;
    const { source, steps, isLegacy, ...rest } = start;
    const credentials = source.kind === "image" ? source.credentials : undefined;
    // Before the build is in the queue, so that it is never begun without them.
    const credentialsId = credentials && scheduler.credentials.keep(credentials);
    const request: BuildRequest = {
      ...rest,
      source: { kind: source.kind, reference: source.reference, ...(credentialsId === undefined ? {} : { credentialsId }) },
      steps: await this.#withArchives(job.teamId, steps),
    };
    let started: StartedBuild["kind"] | undefined;
    try {
      const change = { request, isLegacy, owner: scheduler.owner, superseded: CANCELLED, now: clock.now() };
      started = (await limits.admitBuild(job.teamId, (maxBuilds) => builds.start(job, { ...change, maxBuilds }))).kind;
    } finally {
      if (started !== "started") scheduler.credentials.drop(credentialsId);
    }
    if (started === "not-waiting") throw invalid("build is not in waiting state");
    scheduler.wake();
  }

  /** Requests a build and starts it at once. */
  async requestAndStart(asked: NewBuildRequest, start: BuildStart): Promise<RequestedBuild> {
    const requested = await this.request(asked);
    const job = await this.#deps.builds.findEntry(requested.buildId);
    if (job) await this.start(job, start);
    return requested;
  }

  /** Of the teams, the one that has the template; undefined when none has. */
  async teamOf(teams: readonly Team[], templateId: string): Promise<Team | undefined> {
    const template = TEMPLATE_ID.test(templateId) ? await this.#deps.templates.findTemplate(templateId) : undefined;
    return teams.find(({ id }) => id === template?.teamId);
  }

  /** Fails a waiting build whose start was refused for good. */
  async refuse(job: BuildEntry, message: string): Promise<void> {
    await this.#deps.builds.fail(job.id, { from: "waiting", reason: { message }, now: this.#deps.clock.now() });
  }

  /** A build of one of the teams, to be started. */
  async findToStart(teams: readonly Team[], ids: { readonly templateId: string; readonly buildId: string }): Promise<BuildEntry> {
    if (!isUuid(ids.buildId)) throw invalid(`Invalid build ID: ${ids.buildId}`);
    const job = await this.#find(ids);
    if (!job || job.templateIsDeleted)
      throw publicError("not_found", `Error when getting template: there is no build ${ids.buildId} of template ${ids.templateId}`);
    if (!isOf(job, teams)) throw publicError("forbidden", "User does not have access to the template");
    return job;
  }

  /** A build of one of the teams, to be read. */
  async findToRead(teams: readonly Team[], ids: { readonly templateId: string; readonly buildId: string }): Promise<BuildEntry> {
    if (!isUuid(ids.buildId)) throw invalid("Invalid build id");
    const job = await this.#find(ids);
    if (!job) throw invalid(`Build '${ids.buildId}' not found`);
    if (!isOf(job, teams)) throw publicError("forbidden", `You don't have access to this sandbox template (${ids.templateId})`);
    return job;
  }

  /** Lines of the log. Precondition: the build was read before, so that the lines of the state that it is in are there. */
  async readLog(job: BuildEntry, page: Parameters<BuildLogRepository["page"]>[1]): Promise<readonly BuildLogLine[]> {
    return await this.#deps.buildLogs.page(job.id, page);
  }

  async readLogAround(job: BuildEntry, window: BuildLogWindow): Promise<readonly BuildLogLine[]> {
    return await this.#deps.buildLogs.window(job.id, window);
  }

  /** Ends all builds of a team that have not ended. */
  async cancelOfTeam(teamId: string): Promise<{ readonly cancelled: number; readonly failed: number }> {
    const { builds, clock, scheduler } = this.#deps;
    const counts = { cancelled: 0, failed: 0 };
    for (const from of ["waiting", "building"] as const) {
      for (const id of await builds.listOfTeam(teamId, from)) {
        try {
          if (await builds.fail(id, { from, reason: CANCELLED, now: clock.now() })) counts.cancelled += 1;
        } catch {
          counts.failed += 1;
        }
      }
    }
    scheduler.wake();
    return counts;
  }

  async #find({ templateId, buildId }: { readonly templateId: string; readonly buildId: string }): Promise<BuildEntry | undefined> {
    const job = await this.#deps.builds.findEntry(buildId.toLowerCase());
    return job?.templateId === templateId ? job : undefined;
  }

  /** Adds the blob of each hash, and marks the files as used: they are kept until the build has ended. */
  async #withArchives(teamId: string, steps: readonly GivenStep[]): Promise<readonly BuildRequestStep[]> {
    const { buildFiles, clock } = this.#deps;
    const hashes = [...new Set(steps.map(({ filesHash }) => filesHash).filter((hash) => hash !== ""))];
    await buildFiles.touch(teamId, hashes, clock.now());
    const files = await Promise.all(hashes.map((hash) => buildFiles.find(teamId, hash)));
    const blobs = new Map(files.flatMap((file) => (file ? [[file.hash, file.blob] as const] : [])));
    return steps.map((step) => ({ ...step, archive: blobs.get(step.filesHash) ?? "" }));
  }
}

function isOf(job: BuildEntry, teams: readonly Team[]): boolean {
  return teams.some(({ id }) => id === job.teamId);
}
