import { type AddressInfo, isIPv6 } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock, Logger, Secret } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { RouteService } from "@skerry/wire/control";
import type { FastifyInstance } from "fastify";
import { type ApiConfig, type ApiTiming, DEFAULT_TIMING } from "./config.ts";
import { createServer } from "./http/server.ts";
import { createRouteService } from "./route-service.ts";
import { accessTokenOf } from "./sandboxes/access-token.ts";
import { Expiry } from "./sandboxes/expiry.ts";
import { SandboxKills } from "./sandboxes/kills.ts";
import type { NodeDirectory } from "./sandboxes/ports.ts";
import { reconcile } from "./sandboxes/reconcile.ts";
import { SandboxService } from "./sandboxes/service.ts";

export interface ApiDeps {
  /** Stays the caller's: close it after the API. */
  readonly store: Store;
  readonly nodes: NodeDirectory;
  readonly secrets: { readonly tokenSeed: Secret; readonly adminToken: Secret };
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Api extends AsyncDisposable {
  /** Begins to answer, to expire sandboxes and to reconcile. Answers with the base URL. */
  listen(): Promise<{ readonly url: string; readonly port: number }>;
  /** Answers what is under way, and stops. Sandboxes live on. */
  close(): Promise<void>;
  /** One round of making entries and nodes agree; it happens by itself while the API listens. */
  reconcile(): Promise<void>;
  readonly fastify: FastifyInstance;
  readonly routeService: ServiceImpl<typeof RouteService>;
}

export async function createApi(config: ApiConfig, deps: ApiDeps): Promise<Api> {
  const { store, nodes, clock, logger } = deps;
  const timing: ApiTiming = { ...DEFAULT_TIMING, ...config.timing };
  const sandboxes = store.sandboxes;
  const kills = new SandboxKills({ sandboxes, nodes, clock, logger, killTimeoutMs: timing.killTimeoutMs });
  const service = new SandboxService({ config, timing, store, nodes, kills, tokenSeed: deps.secrets.tokenSeed, clock, logger });
  const expiry = new Expiry({ sandboxes, kills, clock, logger, scanMs: timing.expiryScanMs });
  const fastify = await createServer(
    { config, store, sandboxes: service, accessTokenOf: (id) => accessTokenOf(deps.secrets.tokenSeed, id), clock, logger },
    { identity: store.identity, adminToken: deps.secrets.adminToken, clock },
  );
  const reconcileDeps = { sandboxes, nodes, kills, clock, logger, timing, ownerId: config.ownerId, startedAt: clock.now() };
  const rounds = new Rounds(() => reconcile(reconcileDeps), { everyMs: timing.reconcileMs, logger });

  const close = async () => {
    await Promise.all([rounds.stop(), expiry.stop(), fastify.close()]);
    await kills.stop();
  };
  return {
    async listen() {
      expiry.start();
      rounds.start();
      await fastify.listen({ host: config.host, port: config.port });
      const { port } = fastify.server.address() as AddressInfo;
      return { url: `http://${isIPv6(config.host) ? `[${config.host}]` : config.host}:${port}`, port };
    },
    close,
    reconcile: () => rounds.now(),
    fastify,
    routeService: createRouteService(sandboxes, clock),
    [Symbol.asyncDispose]: close,
  };
}

/** Work that is repeated, never twice at once. */
class Rounds {
  readonly #work: () => Promise<void>;
  readonly #options: { readonly everyMs: number; readonly logger: Logger };
  #current: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #stopped = true;
  constructor(work: () => Promise<void>, options: { everyMs: number; logger: Logger }) {
    this.#work = work;
    this.#options = options;
  }

  start(): void {
    this.#stopped = false;
    this.#repeat();
  }

  now(): Promise<void> {
    const round = this.#current.then(this.#work);
    this.#current = round.catch(() => {});
    return round;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#current;
  }

  #repeat(): void {
    this.now()
      .catch((error: unknown) => this.#options.logger.error({ err: error }, "reconciling failed"))
      .finally(() => {
        if (!this.#stopped) this.#timer = setTimeout(() => this.#repeat(), this.#options.everyMs);
      });
  }
}
