// Carries builds out. Each round reads all builds that are queued or run, in every process alike: whose time is over is ended, what a dead
// process followed is taken over, and free places are filled in an order that every process computes in the same way. A process begins only
// its own builds, because it has their credentials.

import type { BuildEntry } from "@skerry/store";
import { BuildReleases } from "./build-releases.ts";
import { type BuildBase, findBase } from "./build-spec.ts";
import { nextTurns, type Turn } from "./build-turns.ts";
import type { BuildCredentials } from "./credentials.ts";
import type { BuildDeps } from "./deps.ts";
import { beginBuild, endWith, followBuild } from "./follow-build.ts";
import { CANCELLED, CREDENTIALS_GONE, QUEUED_TOO_LONG, TOOK_TOO_LONG, WAITED_TOO_LONG } from "./reasons.ts";

interface Followed {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

export class BuildScheduler {
  readonly #deps: BuildDeps;
  readonly #releases: BuildReleases;
  readonly #followed = new Map<string, Followed>();
  /** Nodes that refused a build for want of room, until the next round that a timer begins. */
  readonly #full = new Set<string>();
  /** By team: when one of its builds last began, as far as this process has seen. */
  readonly #lastBegan = new Map<string, number>();
  #round: Promise<void> = Promise.resolve();
  #isWanted = false;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = true;
  constructor(deps: BuildDeps) {
    this.#deps = deps;
    this.#releases = new BuildReleases(deps);
  }

  /** The run of this process that follows the builds it starts. */
  get owner(): string {
    return this.#deps.moves.owner;
  }

  get credentials(): BuildCredentials {
    return this.#deps.credentials;
  }

  start(): void {
    this.#isStopped = false;
    this.#schedule(0);
  }

  /** Runs a round soon, because something has changed. */
  wake(): void {
    if (this.#isStopped || this.#isWanted) return;
    this.#isWanted = true;
    void this.now().catch((error: unknown) => this.#complain(error));
  }

  /** Runs a round after the one under way. */
  now(): Promise<void> {
    const round = this.#round.then(async () => {
      this.#isWanted = false;
      await this.#look();
    });
    this.#round = round.catch(() => {});
    return round;
  }

  /** Stops following. The builds go on on their nodes, and are followed by the next run of this process or by another one. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#round;
    for (const { stop } of this.#followed.values()) stop.abort();
    await Promise.all([...this.#followed.values()].map(({ done }) => done));
    await this.#releases.stop();
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#full.clear();
      this.now()
        .catch((error: unknown) => this.#complain(error))
        .finally(() => this.#schedule(this.#deps.timing.buildRoundMs));
    }, ms);
  }

  async #look(): Promise<void> {
    const { store, clock, timing } = this.#deps;
    for (const id of await store.builds.listGivenUp(clock.now() - timing.buildWaitingMs)) {
      await store.builds.fail(id, { from: "waiting", reason: WAITED_TOO_LONG, now: clock.now() });
    }
    const all = await store.builds.listBuilding();
    const going: BuildEntry[] = [];
    for (const build of all) if (!(await this.#endIfOver(build))) going.push(await this.#takeOverIfLeft(build));
    for (const { teamId, beganAt = 0 } of all) this.#lastBegan.set(teamId, Math.max(this.#lastBegan.get(teamId) ?? 0, beganAt));
    const mine = going.filter(({ owner }) => owner === this.owner);
    for (const [id, { stop }] of this.#followed) if (!mine.some((build) => build.id === id)) stop.abort();
    for (const build of mine) if (build.nodeId !== undefined) this.#follow(build, build.nodeId);
    await this.#fill(going);
    await this.#releases.look();
  }

  /** Ends a build whose time is over, whichever process follows it. */
  async #endIfOver(build: BuildEntry): Promise<boolean> {
    const { store, clock, timing } = this.#deps;
    const now = clock.now();
    const { beganAt, startedAt = now, templateIsDeleted } = build;
    const isLate = beganAt === undefined ? now - startedAt > timing.buildQueueMs : now - beganAt > timing.buildMs;
    if (!templateIsDeleted && !isLate) return false;
    const reason = templateIsDeleted ? CANCELLED : beganAt === undefined ? QUEUED_TOO_LONG : TOOK_TOO_LONG;
    await store.builds.fail(build.id, { from: "building", reason, now });
    return true;
  }

  async #takeOverIfLeft(build: BuildEntry): Promise<BuildEntry> {
    const { leftOvers, store, logger } = this.#deps;
    if (build.owner === this.owner) return build;
    if (!leftOvers.isLeft({ key: build.id, owner: build.owner, longestMs: Number.POSITIVE_INFINITY })) return build;
    if (!(await store.builds.takeOver(build.id, { from: build.owner, owner: this.owner }))) return build;
    logger.info({ build_id: build.id, node_id: build.nodeId }, "a build of a process that has ended is followed here");
    return { ...build, owner: this.owner };
  }

  /** Begins builds that are queued, as far as there is room for them. */
  async #fill(builds: readonly BuildEntry[]): Promise<void> {
    if (this.#isStopped || builds.every(({ nodeId }) => nodeId !== undefined)) return;
    const { nodes, config, store } = this.#deps;
    const closed = await store.nodes.closed();
    const bases = new Map<string, BuildBase>();
    const queued = builds.filter(({ nodeId }) => nodeId === undefined);
    for (const build of queued.filter(({ owner }) => owner === this.owner)) {
      const base = await this.#findBase(build);
      if (base) bases.set(build.id, base);
    }
    const isDropped = (build: BuildEntry) => build.nodeId === undefined && build.owner === this.owner && !bases.has(build.id);
    const turns = nextTurns({
      builds: builds.filter((build) => !isDropped(build)),
      nodeIds: nodes
        .candidates(closed)
        .map(({ nodeId }) => nodeId)
        .filter((nodeId) => !this.#full.has(nodeId)),
      lastBegan: this.#lastBegan,
      atOnce: config.buildsAtOnce,
      nodeOf: ({ id }) => {
        const base = bases.get(id);
        return base?.kind === "template" && nodes.list().length > 1 ? base.nodeId : undefined;
      },
    });
    for (const turn of turns) {
      const base = bases.get(turn.build.id);
      if (base && base.kind !== "missing") await this.#begin(turn, base);
    }
  }

  /** Undefined: the build has ended, because what it needs is not there. */
  async #findBase(build: BuildEntry): Promise<BuildBase | undefined> {
    const { store, templates, credentials } = this.#deps;
    const job = await store.builds.find(build.id);
    if (!job?.request) return undefined;
    const { credentialsId } = job.request.source;
    if (credentialsId !== undefined && !credentials.find(credentialsId)) {
      await endWith(this.#deps, job, CREDENTIALS_GONE);
      return undefined;
    }
    const base = await findBase(templates, await store.identity.findTeam(job.teamId), job.request);
    if (base.kind !== "missing") return base;
    await endWith(this.#deps, job, base.reason);
    return undefined;
  }

  async #begin({ build, nodeId }: Turn, base: Exclude<BuildBase, { kind: "missing" }>): Promise<void> {
    const { store, clock, config } = this.#deps;
    const now = clock.now();
    const isOurs = await store.builds.assign(build.id, { owner: this.owner, nodeId, atOnce: config.buildsAtOnce, now });
    if (!isOurs) return;
    this.#lastBegan.set(build.teamId, now);
    this.#follow(build, nodeId, base);
  }

  /** Follows a build in the background. With `base`, its node is given the build first. */
  #follow(build: BuildEntry, nodeId: string, base?: Exclude<BuildBase, { kind: "missing" }>): void {
    const node = this.#deps.nodes.find(nodeId);
    if (!node || this.#followed.has(build.id) || this.#isStopped) return;
    const stop = new AbortController();
    const done = this.#carryOut(build.id, { node, signal: stop.signal, base })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) this.#deps.logger.error({ err: error, build_id: build.id }, "following a build failed");
      })
      .finally(() => {
        this.#followed.delete(build.id);
        this.wake();
      });
    this.#followed.set(build.id, { stop, done });
  }

  async #carryOut(
    buildId: string,
    about: {
      readonly node: NonNullable<ReturnType<BuildDeps["nodes"]["find"]>>;
      readonly signal: AbortSignal;
      readonly base: Exclude<BuildBase, { kind: "missing" }> | undefined;
    },
  ): Promise<void> {
    const { node, signal, base } = about;
    const job = await this.#deps.store.builds.find(buildId);
    if (job?.status !== "building" || job.owner !== this.owner || job.nodeId !== node.nodeId) return;
    const begun = base ? await beginBuild(this.#deps, { job, node, signal }, base) : "begun";
    if (begun === "busy") this.#full.add(node.nodeId);
    if (begun === "begun") await followBuild(this.#deps, { job, node, signal });
  }

  #complain(error: unknown): void {
    this.#deps.logger.error({ err: error }, "a round of the build scheduler failed");
  }
}
