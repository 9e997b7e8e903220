import { type AddressInfo, isIPv6 } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock, Logger, Secret } from "@skerry/base";
import type { BlobStore } from "@skerry/blobs";
import type { Store } from "@skerry/store";
import type { RouteService } from "@skerry/wire/control";
import type { FastifyInstance } from "fastify";
import { AccountService } from "./accounts/account-service.ts";
import { createAudit } from "./audit/create-audit.ts";
import { createBuilds } from "./builds/create-builds.ts";
import { type ApiConfig, type ApiTiming, DEFAULT_TIMING } from "./config.ts";
import { EgressCollector } from "./egress/egress-collector.ts";
import { EgressService } from "./egress/egress-service.ts";
import { createEvents } from "./events/create-events.ts";
import { RequestRates } from "./http/request-rates.ts";
import { createServer } from "./http/server.ts";
import { IdempotentRequests } from "./idempotency/idempotent-requests.ts";
import { authenticate } from "./keys/authenticate.ts";
import { accessTokenOf, trafficTokenOf } from "./keys/credential.ts";
import { KeyService } from "./keys/key-service.ts";
import { LinkService, type SandboxOrigin } from "./links/link-service.ts";
import { Liveness } from "./liveness.ts";
import { LogCleaner } from "./logs/log-cleaner.ts";
import { LogService } from "./logs/log-service.ts";
import { OutputCollector } from "./logs/output-collector.ts";
import { MetricRounds } from "./metrics/metric-rounds.ts";
import { MetricsService } from "./metrics/metrics-service.ts";
import { StartCounts } from "./metrics/start-counts.ts";
import { UsageCollector } from "./metrics/usage-collector.ts";
import type { NodeDirectory } from "./nodes/directory.ts";
import { NodeService } from "./nodes/node-service.ts";
import { Nodes } from "./nodes/nodes.ts";
import { observePlatform } from "./observe/observe-platform.ts";
import type { SandboxDeps } from "./sandboxes/deps.ts";
import { ImageDeletions } from "./sandboxes/images/image-deletions.ts";
import { AutoPauses } from "./sandboxes/lifecycle/auto-pauses.ts";
import { Expiry } from "./sandboxes/lifecycle/expiry.ts";
import { SandboxKills } from "./sandboxes/lifecycle/kills.ts";
import { newRun, type Owner, SandboxMoves } from "./sandboxes/lifecycle/moves.ts";
import { Revivals } from "./sandboxes/lifecycle/revivals.ts";
import { ShutdownGate } from "./sandboxes/lifecycle/suspension.ts";
import { GivenUp } from "./sandboxes/reconcile/given-up.ts";
import { LeftOvers } from "./sandboxes/reconcile/left-overs.ts";
import { ReconcileRounds } from "./sandboxes/reconcile/reconcile-rounds.ts";
import { SandboxService } from "./sandboxes/service.ts";
import { OutgoingProxies } from "./secrets/outgoing-proxies.ts";
import { SandboxSecretsSource } from "./secrets/sandbox-secrets.ts";
import { type EncryptionKey, SecretBox } from "./secrets/secret-box.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { SignIns } from "./sign-in/sign-ins.ts";
import { SnapshotService } from "./snapshots/snapshot-service.ts";
import { StatusService } from "./status/status-service.ts";
import { LimitService } from "./teams/limit-service.ts";
import { MemberService } from "./teams/member-service.ts";
import { StandingService } from "./teams/standing-service.ts";
import { TeamLimits } from "./teams/team-limits.ts";
import { TeamService } from "./teams/team-service.ts";
import { TagService } from "./templates/tag-service.ts";
import { TemplateService } from "./templates/template-service.ts";
import { createRouteService } from "./traffic/route-service.ts";
import { createVolumes } from "./volumes/create-volumes.ts";
import { VolumeDeletions } from "./volumes/volume-deletions.ts";
import { createWebhooks } from "./webhooks/create-webhooks.ts";

const LOCAL_ORIGIN: SandboxOrigin = { scheme: "http", domain: "localhost:4681" };

export interface ApiDeps {
  /** The caller closes it, after the API. */
  readonly store: Store;
  readonly nodes: NodeDirectory;
  /** Where clients' uploads for builds go, and where nodes read them. */
  readonly blobs: BlobStore;
  readonly secrets: {
    readonly tokenSeed: Secret;
    readonly adminToken: Secret;
    /** The keys of the vault: the first one encrypts. */
    readonly encryptionKeys: readonly EncryptionKey[];
  };
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Api extends AsyncDisposable {
  /** Starts to serve requests, to expire sandboxes and to reconcile. Returns the base URL. */
  listen(): Promise<{ readonly url: string; readonly port: number }>;
  /** Finishes the requests under way, for at most `drainMs`, and stops. Sandboxes keep running. */
  close(): Promise<void>;
  /** Runs one round of reconciliation now. Rounds run by themselves while the API listens. */
  reconcile(): Promise<void>;
  /** Runs one round of the build scheduler now. */
  buildRound(): Promise<void>;
  /** Collects and stores metrics now. */
  metricRound(): Promise<void>;
  /** Looks for uploads that nothing needs now. */
  cleanUploads(): Promise<void>;
  readonly fastify: FastifyInstance;
  readonly routeService: ServiceImpl<typeof RouteService>;
}

export async function createApi(config: ApiConfig, deps: ApiDeps): Promise<Api> {
  const { store, clock, logger } = deps;
  const timing: ApiTiming = { ...DEFAULT_TIMING, ...config.timing };
  const run = newRun(config.ownerId);
  const beats = { processes: store.processes, beatMs: timing.beatMs, deadAfterMs: timing.deadAfterMs, clock, logger };
  const liveness = new Liveness(run, { ...beats, measureClock: () => store.clock.measure() });
  const box = new SecretBox(deps.secrets.encryptionKeys);
  const work = sandboxDeps(config, deps, { box, timing, owner: { id: config.ownerId, run, liveness } });
  const service = new SandboxService(work);
  const { builds, uploads, scheduler, cleaner } = createBuilds(config, { ...deps, work });
  const events = createEvents(config, { ...deps, timing });
  const audit = createAudit(config, { ...deps, timing, run, liveness });
  const webhooks = createWebhooks(config, { store, feed: events.feed, box, clock, logger, timing, owner: run });
  const volumes = createVolumes(config, work);
  const pauses = new AutoPauses(work);
  const expiry = new Expiry({ ...work, sandboxes: store.sandboxes, pauses, scanMs: timing.expiryScanMs });
  const tokens = {
    accessTokenOf: (id: string) => accessTokenOf(deps.secrets.tokenSeed, id),
    trafficTokenOf: (id: string) => trafficTokenOf(deps.secrets.tokenSeed, id),
  };
  const signIns = config.oidc && new SignIns(config.oidc, { users: store.providerUsers, clock, logger, retryMs: timing.providerRetryMs });
  const auth = { identity: store.identity, adminToken: deps.secrets.adminToken, signIns, clock };
  const vault = new SecretService({ secrets: store.secrets, box, clock, logger });
  const proxies = new OutgoingProxies({ box, changes: store.sandboxes.changes, privateNetworks: config.privateNetworks ?? [], logger });
  const links = new LinkService({ links: store.links, clock, origin: config.sandboxOrigin ?? LOCAL_ORIGIN });
  const nodes = new NodeService({ nodes: work.nodes, repository: store.nodes, clock, timeoutMs: timing.listTimeoutMs });
  const fastify = await createServer({
    services: {
      sandboxes: service,
      snapshots: new SnapshotService({ snapshots: store.snapshots, templates: work.templates }),
      templates: work.templates,
      builds,
      uploads,
      tags: new TagService({ tags: store.tags, templates: work.templates, clock }),
      teams: new TeamService({ identity: store.identity, clock }),
      members: new MemberService({ ...store, clock }),
      accounts: new AccountService({ ...store, clock }),
      keys: new KeyService({ ...store, clock }),
      limits: new LimitService({ repository: store.limits, identity: store.identity, defaults: config.limits, clock }),
      standings: new StandingService(store.identity),
      secrets: vault,
      proxies,
      links,
      events: events.service,
      audit: audit.service,
      status: new StatusService({ ...store, nodes, clock }),
      webhooks: webhooks.service,
      nodes,
      metrics: new MetricsService({ ...store, clock }),
      logs: new LogService({ ...store, clock }),
      egress: new EgressService({ ...store, clock }),
      volumes: volumes.service,
      clusterId: store.clusterId,
      idempotency: new IdempotentRequests({ ...work, keys: store.idempotency, ...tokens }),
      encoding: { ...config, ...tokens },
    },
    rates: new RequestRates({ limitsOf: (teamId) => work.limits.of(teamId), defaults: config.limits }),
    authenticate: (operation, headers, onFound) => authenticate(auth, operation, headers, onFound),
    audit: { trail: audit.trail, run },
    trustedProxies: config.trustedProxies ?? [],
    uploadIdleMs: timing.uploadIdleMs,
    volumeContent: volumes.content,
    clock,
    logger,
  });
  const rounds = new ReconcileRounds(work);
  const metrics = metricRounds(config, work);
  const logCleaner = createLogCleaner(config, work);

  const revivals = new Revivals(work);
  let endObserving = () => {};

  const close = async () => {
    endObserving();
    events.service.stop();
    const late = setTimeout(() => fastify.server.closeAllConnections(), timing.drainMs);
    await Promise.all([
      rounds.stop(),
      metrics.stop(),
      logCleaner.stop(),
      revivals.stop(),
      expiry.stop(),
      scheduler.stop(),
      cleaner.stop(),
      webhooks.stop(),
      fastify.close(),
    ]);
    clearTimeout(late);
    await pauses.stop();
    await Promise.all([work.kills.stop(), work.images.stop(), work.volumes.stop()]);
    await events.stop();
    await audit.trail.stop();
    await liveness.stop();
  };
  return {
    async listen() {
      await liveness.start();
      await vault.reseal();
      await proxies.reseal();
      expiry.start();
      rounds.start();
      metrics.start();
      logCleaner.start();
      revivals.start();
      scheduler.start();
      cleaner.start();
      events.start();
      audit.trail.start();
      await webhooks.start();
      endObserving = observePlatform(work);
      await fastify.listen({ host: config.host, port: config.port });
      const { port } = fastify.server.address() as AddressInfo;
      return { url: `http://${isIPv6(config.host) ? `[${config.host}]` : config.host}:${port}`, port };
    },
    close,
    reconcile: () => rounds.now(),
    metricRound: () => metrics.now(),
    buildRound: () => scheduler.now(),
    cleanUploads: () => cleaner.look(),
    fastify,
    routeService: createRouteService({
      sandboxes: store.sandboxes,
      wake: (id, signal) => service.wake(id, signal),
      ...tokens,
      findLink: (id, port, proof) => links.find(id, port, proof),
      clock,
      logger,
    }),
    [Symbol.asyncDispose]: close,
  };
}

function metricRounds(config: ApiConfig, { store, nodes, starts, clock, logger, timing }: SandboxDeps): MetricRounds {
  const collector = new UsageCollector({ nodes, sandboxMetrics: store.sandboxMetrics, clock, logger, timeoutMs: timing.listTimeoutMs });
  const output = new OutputCollector({ nodes, sandboxLogs: store.sandboxLogs, logger, timeoutMs: timing.listTimeoutMs });
  const egress = new EgressCollector({ nodes, egress: store.egress, clock, logger, timeoutMs: timing.listTimeoutMs });
  const keepMs = metricsMs(config);
  return new MetricRounds({ store, collectors: [collector, egress, output], starts, clock, logger, roundMs: timing.metricsMs, keepMs });
}

function metricsMs({ metricsDays = 30 }: ApiConfig): number {
  return metricsDays * 24 * 3_600_000;
}

function createLogCleaner(config: ApiConfig, { store, clock, logger, timing }: SandboxDeps): LogCleaner {
  const keepMs = (config.logDays ?? 7) * 24 * 3_600_000;
  const maxTeamCharacters = (config.logTeamMb ?? 256) * 1024 * 1024;
  const { sandboxLogs, egress } = store;
  return new LogCleaner({
    sandboxLogs,
    egress,
    keepCountsMs: metricsMs(config),
    clock,
    logger,
    keepMs,
    maxTeamCharacters,
    lookMs: timing.logLookMs,
  });
}

function sandboxDeps(config: ApiConfig, deps: ApiDeps, about: { box: SecretBox; timing: ApiTiming; owner: Owner }): SandboxDeps {
  const { box, timing, owner } = about;
  const { store, clock, logger } = deps;
  const nodes = new Nodes(deps.nodes, logger);
  const { sandboxes } = store;
  const moves = new SandboxMoves({ sandboxes, clock, owner });
  const images = new ImageDeletions({ images: store.images, nodes, clock, logger, timeoutMs: timing.killTimeoutMs });
  const kills = new SandboxKills({ sandboxes, nodes, moves, images, clock, logger, killTimeoutMs: timing.killTimeoutMs });
  const leftOvers = new LeftOvers(moves, owner.liveness);
  const { killTimeoutMs: timeoutMs, createTimeoutMs } = timing;
  const volumes = new VolumeDeletions({ ...store, nodes, leftOvers, clock, logger, timeoutMs, longestCreateMs: createTimeoutMs * 2 });
  return {
    config,
    timing,
    store,
    templates: new TemplateService({ ...store, imageDeletions: images, clock }),
    nodes,
    limits: new TeamLimits({ repository: store.limits, defaults: config.limits }),
    moves,
    kills,
    images,
    leftOvers,
    volumes,
    givenUp: new GivenUp(),
    starts: new StartCounts(),
    gate: new ShutdownGate(),
    tokenSeed: deps.secrets.tokenSeed,
    secrets: new SandboxSecretsSource({ secrets: store.secrets, box, tokenSeed: deps.secrets.tokenSeed, logger }),
    clock,
    logger,
  };
}
