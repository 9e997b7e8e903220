// `skerry serve`: one process with all roles or a subset of them. Roles in one process call each other through in-memory transports, with
// the same interfaces as over the network.

import { flushCompileCache } from "node:module";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { createApi, localNode, type NodeDirectory, remoteNodes, rpcTransport, seedIdentity, seedTemplates } from "@skerry/api";
import { createLogger, IdleMemory, type Logger, PlatformError } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { connectDialer, createEdge, type Dial, findLinkFrom, findSignerFrom, routeTableFrom } from "@skerry/edge";
import { createNode, type Node } from "@skerry/node";
import { dataFolder } from "@skerry/setup/folder";
import { openStore, refuseNewerDatabase } from "@skerry/store";
import { AGENT_VERSION } from "@skerry/wire";
import { RouteService } from "@skerry/wire/control";
import { apiProxiesOf, databaseUrlOf, parseServeConfig, type ServeConfig, sandboxOriginOf } from "./config.ts";
import { listenControlServer } from "./control-server.ts";
import { type EdgeTls, openEdgeTls } from "./edge-tls.ts";
import { encryptionKeysOf } from "./encryption-keys.ts";
import { listening } from "./listening.ts";
import { nodeConfigOf } from "./node-host.ts";
import { ownerIdOf } from "./owner-id.ts";
import { type PlatformSecrets, readSecrets } from "./secrets.ts";
import { sendTraces } from "./send-traces.ts";
import { serveMetrics } from "./serve-metrics.ts";

/** Minimum heap growth that justifies a garbage collection of an idle platform. */
const MEMORY_WORTH_BYTES = 32 * 1024 * 1024;
const MEMORY_LOOK_MS = 10_000;

/** Runs the platform until SIGTERM or SIGINT. Sandboxes keep running without it, and the next start adopts them. */
export async function serve(env: Readonly<Record<string, string | undefined>>, { version }: { readonly version: string }): Promise<void> {
  const config = parseServeConfig(env);
  const secrets = readSecrets(config.secretsFile ?? dataFolder(config.dataDir).secretsFile);
  const logger = createLogger({ name: "skerry", level: config.logLevel });
  const stopped = new Promise<string>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => resolve(signal));
  });
  await using telemetry = new AsyncDisposableStack();
  telemetry.defer(await sendTraces(config, { version, logger }));
  await using roles = await startRoles({ config, secrets, logger, stopped });
  telemetry.defer(await serveMetrics(config, { version, logger }));
  const memory = new IdleMemory({ worthBytes: MEMORY_WORTH_BYTES });
  setInterval(() => memory.touch(), MEMORY_LOOK_MS).unref();
  logger.info({ roles: [...config.roles], pid: process.pid }, "platform ready");
  // Written now rather than at the end of the process, so that the start after a crash is fast as well.
  flushCompileCache();
  logger.info({ signal: await stopped }, "platform stopping");
  await roles.disposeAsync();
  logger.info({}, "platform stopped");
}

interface RoleContext {
  readonly config: ServeConfig;
  readonly secrets: PlatformSecrets;
  readonly logger: Logger;
  /** Settles when this process is to stop. */
  readonly stopped: Promise<unknown>;
}

async function startRoles(context: RoleContext): Promise<AsyncDisposableStack> {
  const { config, secrets, logger } = context;
  const stack = new AsyncDisposableStack();
  try {
    const alone = config.roles.size === 3;
    // Before the API answers, because an operator then takes the start for a success.
    const tls = config.roles.has("edge") ? await openEdgeTls(config, stack, logger.child({ role: "edge" })) : {};
    // Before the node changes anything. The store itself is opened after the node's start, which makes room on a full disk.
    if (config.roles.has("api")) await refuseNewerDatabase(databaseUrlOf(config), logger);
    const node = config.roles.has("node") ? await startNode(context, stack) : undefined;
    if (node && !alone) {
      const { listen: host, nodePort: port } = config;
      const listener = await listening({ what: "the node", host, port, setting: "SKERRY_NODE_PORT" }, () =>
        node.listen({ host, port, secret: secrets.internalSecret }),
      );
      stack.defer(() => listener.close());
    }
    const routes = config.roles.has("api") ? await startApi(context, stack, node) : undefined;
    if (config.roles.has("edge")) {
      const transport = routes ?? rpcTransport(config.controlUrl ?? "", secrets.internalSecret);
      await startEdge(context, stack, { transport, node, tls });
    }
    return stack;
  } catch (error) {
    logger.error({ err: error }, "platform could not start");
    await stack.disposeAsync();
    throw error;
  }
}

async function startNode({ config, logger }: RoleContext, stack: AsyncDisposableStack): Promise<Node> {
  const node = await createNode(await nodeConfigOf(config), logger.child({ role: "node" }));
  stack.defer(() => node.close());
  return node;
}

/** Returns the transport of the route RPC within this process. */
async function startApi(context: RoleContext, stack: AsyncDisposableStack, node: Node | undefined) {
  const { config, secrets, logger } = context;
  if (!secrets.control) throw new PlatformError("config_invalid", "the secrets file has no tokenSeed, which the api role needs");
  const store = await openStore(databaseUrlOf(config), logger.child({ part: "store" }), { events: config.events });
  stack.defer(() => store.close());
  await seedIdentity(store, secrets.control, store.clock);
  await seedTemplates(store, dataFolder(config.dataDir).templatesDir, { teamId: secrets.control.teamId, clock: store.clock });
  const api = await createApi(
    {
      host: config.listen,
      port: config.apiPort,
      limits: config.limits,
      buildsAtOnce: config.buildsAtOnce,
      buildCacheDays: config.buildCacheDays,
      maxUploadMb: config.maxUploadMb,
      metricsDays: config.metricsDays,
      eventDays: config.eventDays,
      maxEvents: config.maxEvents,
      logDays: config.logDays,
      logTeamMb: config.logTeamMb,
      volumeSizeMb: config.volumeSizeMb,
      webhookNetworks: config.webhookNetworks,
      auditDays: config.auditDays,
      maxAuditLines: config.maxAuditLines,
      trustedProxies: apiProxiesOf(config),
      ...(config.oidc === undefined ? {} : { oidc: config.oidc }),
      privateNetworks: config.allowPrivate,
      ...(config.apiUrl === undefined ? {} : { publicUrl: config.apiUrl }),
      sandboxOrigin: sandboxOriginOf(config),
      ownerId: ownerIdOf({ dataDir: config.dataDir, port: config.apiPort, logger }),
      agentVersion: AGENT_VERSION,
      timing: { keepUnaskedMs: config.keepEndedHours * 3_600_000 },
      ...(config.advertiseDomain === undefined ? {} : { advertiseDomain: config.advertiseDomain }),
    },
    {
      store,
      blobs: await openFolderBlobStore(config.blobsDir ?? dataFolder(config.dataDir).blobsDir),
      nodes: await nodeDirectory(context, stack, { node, clusterId: store.clusterId }),
      secrets: { ...secrets.control, encryptionKeys: await encryptionKeysOf(config) },
      clock: store.clock,
      logger: logger.child({ role: "api" }),
    },
  );
  stack.defer(() => api.close());
  const host = config.listen;
  await listening({ what: "the API", host, port: config.apiPort, setting: "SKERRY_API_PORT, --api-port" }, () => api.listen());
  if (!config.roles.has("edge")) {
    const port = config.controlPort;
    const control = await listening({ what: "the control server", host, port, setting: "SKERRY_CONTROL_PORT" }, () =>
      listenControlServer({ host, port, secret: secrets.internalSecret, service: api.routeService }),
    );
    stack.defer(() => control.close());
  }
  return createRouterTransport((router) => router.service(RouteService, api.routeService));
}

async function nodeDirectory(
  { config, secrets, logger, stopped }: RoleContext,
  stack: AsyncDisposableStack,
  { node, clusterId }: { node: Node | undefined; clusterId: string },
): Promise<NodeDirectory> {
  if (node) return await localNode({ service: node.service, url: config.nodeUrl, clusterId, logger });
  const nodes = remoteNodes({ urls: config.nodes, secret: secrets.internalSecret, clusterId, logger });
  stack.defer(() => nodes.close());
  await Promise.race([nodes.settled(), stopped]);
  return nodes;
}

async function startEdge(
  { config, secrets, logger }: RoleContext,
  stack: AsyncDisposableStack,
  { transport, node, tls }: { transport: ReturnType<typeof rpcTransport>; node: Node | undefined; tls: EdgeTls },
): Promise<void> {
  const dial: Dial = node ? (_route, target, signal) => node.dial(target, signal) : connectDialer(secrets.internalSecret);
  const { listen: host, edgePort: port, trustedProxies, pathHost } = config;
  const { maxSandboxConnections, maxSandboxRequestsPerSecond, maxTeamConnections, maxTeamRequestsPerSecond } = config;
  const client = createClient(RouteService, transport);
  const edge = createEdge(
    {
      host,
      port,
      trustedProxies,
      maxSandboxRequestsPerSecond,
      maxGroupRequestsPerSecond: maxTeamRequestsPerSecond,
      ...(maxTeamConnections === 0 ? {} : { maxGroupConnections: maxTeamConnections }),
      ...(pathHost === undefined ? {} : { pathHost }),
      ...(maxSandboxConnections === 0 ? {} : { maxSandboxConnections }),
      ...tls,
    },
    {
      routes: routeTableFrom(client),
      findSigner: findSignerFrom(client),
      findLink: findLinkFrom(client),
      dial,
      logger: logger.child({ role: "edge" }),
    },
  );
  await listening({ what: "the edge", host, port, setting: "SKERRY_EDGE_PORT, --edge-port" }, () => edge.listen());
  stack.defer(() => edge.close());
  if (tls.tls) {
    await listening({ what: "the edge", host, port: tls.tls.port, setting: "SKERRY_TLS_PORT, --tls-port" }, () => edge.listenTls());
  }
}
