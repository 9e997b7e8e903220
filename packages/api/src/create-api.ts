import { type AddressInfo, isIPv6 } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock, Logger, Secret } from "@skerry/base";
import type { BlobStore } from "@skerry/blobs";
import type { Store } from "@skerry/store";
import type { RouteService } from "@skerry/wire/control";
import type { FastifyInstance } from "fastify";
import { createBuilds } from "./builds/create-builds.ts";
import { type ApiConfig, type ApiTiming, DEFAULT_TIMING } from "./config.ts";
import { createServer } from "./http/server.ts";
import { IdempotentRequests } from "./idempotency/idempotent-requests.ts";
import { authenticate } from "./keys/authenticate.ts";
import { accessTokenOf, trafficTokenOf } from "./keys/credential.ts";
import { KeyService } from "./keys/key-service.ts";
import { LinkService, type SandboxOrigin } from "./links/link-service.ts";
import { Liveness } from "./liveness.ts";
import type { NodeDirectory } from "./nodes/directory.ts";
import { NodeService } from "./nodes/node-service.ts";
import { Nodes } from "./nodes/nodes.ts";
import type { SandboxDeps } from "./sandboxes/deps.ts";
import { ImageDeletions } from "./sandboxes/images/image-deletions.ts";
import { AutoPauses } from "./sandboxes/lifecycle/auto-pauses.ts";
import { Expiry } from "./sandboxes/lifecycle/expiry.ts";
import { SandboxKills } from "./sandboxes/lifecycle/kills.ts";
import { newRun, type Owner, SandboxMoves } from "./sandboxes/lifecycle/moves.ts";
import { GivenUp } from "./sandboxes/reconcile/given-up.ts";
import { LeftOvers } from "./sandboxes/reconcile/left-overs.ts";
import { ReconcileRounds } from "./sandboxes/reconcile/reconcile-rounds.ts";
import { SandboxService } from "./sandboxes/service.ts";
import { type EncryptionKey, SecretBox } from "./secrets/secret-box.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { SnapshotService } from "./snapshots/snapshot-service.ts";
import { TeamLimits } from "./teams/team-limits.ts";
import { TeamService } from "./teams/team-service.ts";
import { TagService } from "./templates/tag-service.ts";
import { TemplateService } from "./templates/template-service.ts";
import { createRouteService } from "./traffic/route-service.ts";

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
  const work = sandboxDeps(config, deps, { timing, owner: { id: config.ownerId, run, liveness } });
  const service = new SandboxService(work);
  const { builds, uploads, scheduler, cleaner } = createBuilds(config, { ...deps, work });
  const pauses = new AutoPauses(work);
  const expiry = new Expiry({ ...work, sandboxes: store.sandboxes, pauses, scanMs: timing.expiryScanMs });
  const tokens = {
    accessTokenOf: (id: string) => accessTokenOf(deps.secrets.tokenSeed, id),
    trafficTokenOf: (id: string) => trafficTokenOf(deps.secrets.tokenSeed, id),
  };
  const auth = { identity: store.identity, adminToken: deps.secrets.adminToken, clock };
  const vault = new SecretService({ secrets: store.secrets, box: new SecretBox(deps.secrets.encryptionKeys), clock, logger });
  const links = new LinkService({ links: store.links, clock, origin: config.sandboxOrigin ?? LOCAL_ORIGIN });
  const fastify = await createServer({
    services: {
      sandboxes: service,
      snapshots: new SnapshotService({ snapshots: store.snapshots, templates: work.templates }),
      templates: work.templates,
      builds,
      uploads,
      tags: new TagService({ tags: store.tags, templates: work.templates, clock }),
      teams: new TeamService({ identity: store.identity, clock }),
      keys: new KeyService({ ...store, clock }),
      secrets: vault,
      links,
      nodes: new NodeService({ nodes: work.nodes, repository: store.nodes, clock, timeoutMs: timing.listTimeoutMs }),
      clusterId: store.clusterId,
      idempotency: new IdempotentRequests({ ...work, keys: store.idempotency, ...tokens }),
      encoding: { ...config, ...tokens },
    },
    authenticate: (schemes, headers) => authenticate(auth, schemes, headers),
    uploadIdleMs: timing.uploadIdleMs,
    clock,
    logger,
  });
  const rounds = new ReconcileRounds(work);

  const close = async () => {
    const late = setTimeout(() => fastify.server.closeAllConnections(), timing.drainMs);
    await Promise.all([rounds.stop(), expiry.stop(), scheduler.stop(), cleaner.stop(), fastify.close()]);
    clearTimeout(late);
    await pauses.stop();
    await Promise.all([work.kills.stop(), work.images.stop()]);
    await liveness.stop();
  };
  return {
    async listen() {
      await liveness.start();
      await vault.reseal();
      expiry.start();
      rounds.start();
      scheduler.start();
      cleaner.start();
      await fastify.listen({ host: config.host, port: config.port });
      const { port } = fastify.server.address() as AddressInfo;
      return { url: `http://${isIPv6(config.host) ? `[${config.host}]` : config.host}:${port}`, port };
    },
    close,
    reconcile: () => rounds.now(),
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

function sandboxDeps(config: ApiConfig, deps: ApiDeps, about: { timing: ApiTiming; owner: Owner }): SandboxDeps {
  const { timing, owner } = about;
  const { store, clock, logger } = deps;
  const nodes = new Nodes(deps.nodes, logger);
  const { sandboxes } = store;
  const moves = new SandboxMoves({ sandboxes, clock, owner });
  const images = new ImageDeletions({ images: store.images, nodes, clock, logger, timeoutMs: timing.killTimeoutMs });
  const kills = new SandboxKills({ sandboxes, nodes, moves, images, clock, logger, killTimeoutMs: timing.killTimeoutMs });
  const leftOvers = new LeftOvers(moves, owner.liveness);
  return {
    config,
    timing,
    store,
    templates: new TemplateService({ ...store, imageDeletions: images, clock }),
    nodes,
    limits: new TeamLimits(config),
    moves,
    kills,
    images,
    leftOvers,
    givenUp: new GivenUp(),
    tokenSeed: deps.secrets.tokenSeed,
    clock,
    logger,
  };
}
