import { randomBytes, randomUUID } from "node:crypto";
import { openSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, createLogger, Secret, systemClock } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { openStore, type Store } from "@skerry/store";
import { FakeNode } from "@skerry/testkit/fake-node";
import { createPostgresDatabase } from "@skerry/testkit/run-services";
import {
  type Api,
  type ApiConfig,
  type ApiTiming,
  createApi,
  DEFAULT_LIMITS,
  type EncryptionKey,
  type Limits,
  newEncryptionKey,
  parseEncryptionKeys,
} from "../src/index.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf } from "../src/keys/credential.ts";
import { seedIdentity } from "../src/seed/seed-identity.ts";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Record<string, string>;
  readonly key?: string | null;
  /** The address of another API process. */
  readonly url?: string;
}

export interface HarnessOptions {
  readonly nodes?: number;
  readonly timing?: Partial<ApiTiming>;
  readonly limits?: Partial<Limits>;
  readonly buildsAtOnce?: number;
  readonly webhookNetworks?: readonly string[];
}

const SKEW_MS = 90_000;

const TIMING: Partial<ApiTiming> = {
  createTimeoutMs: 2_000,
  pauseTimeoutMs: 2_000,
  resumeTimeoutMs: 2_000,
  snapshotTimeoutMs: 2_000,
  killTimeoutMs: 1_000,
  listTimeoutMs: 500,
  buildRoundMs: 50,
  buildRetryMs: 20,
};

/** An API with a real database, and fake nodes that keep their sandboxes in memory. */
export class ApiHarness implements AsyncDisposable {
  readonly store: Store;
  readonly nodes: readonly FakeNode[];
  readonly apiKey: string;
  readonly otherKey: string;
  readonly accessToken: string;
  readonly adminToken: string;
  encryptionKeys: readonly EncryptionKey[] = parseEncryptionKeys(newEncryptionKey(), "keys");
  readonly teamId: string;
  readonly templateId: string;
  readonly buildId: string;
  readonly blobsDir: Promise<string> = mkdtemp(join(tmpdir(), "skerry-blobs-"));
  databaseUrl = "";
  api!: Api;
  url = "";

  constructor(store: Store, nodes: readonly FakeNode[]) {
    this.store = store;
    this.nodes = nodes;
    this.apiKey = API_KEY_PREFIX + randomBytes(20).toString("hex");
    this.otherKey = API_KEY_PREFIX + randomBytes(20).toString("hex");
    this.accessToken = ACCESS_TOKEN_PREFIX + randomBytes(20).toString("hex");
    this.adminToken = randomBytes(20).toString("hex");
    this.teamId = randomUUID();
    this.templateId = `tpl${randomBytes(8).toString("hex")}`;
    this.buildId = randomUUID();
  }

  static async start(databaseUrl: string, options: HarnessOptions = {}): Promise<ApiHarness> {
    const nodes = Array.from({ length: options.nodes ?? 1 }, (_, index) => new FakeNode(`node${index + 1}`));
    const harness = await ApiHarness.seeded(databaseUrl, nodes, (store, all) => new ApiHarness(store, all));
    harness.api = await harness.createApi({
      ...(options.timing ? { timing: { ...TIMING, ...options.timing } } : {}),
      ...(options.limits === undefined ? {} : { limits: { ...DEFAULT_LIMITS, ...options.limits } }),
      ...(options.webhookNetworks === undefined ? {} : { webhookNetworks: options.webhookNetworks }),
      ...(options.buildsAtOnce === undefined ? {} : { buildsAtOnce: options.buildsAtOnce }),
    });
    ({ url: harness.url } = await harness.api.listen());
    return harness;
  }

  static async seeded<T extends ApiHarness>(
    databaseUrl: string,
    nodes: readonly FakeNode[],
    make: (store: Store, nodes: readonly FakeNode[]) => T,
  ): Promise<T> {
    const harness = make(await openStore(databaseUrl), nodes);
    harness.databaseUrl = databaseUrl;
    await harness.#seed();
    return harness;
  }

  get node(): FakeNode {
    const [first] = this.nodes;
    if (!first) throw new Error("there is no node");
    return first;
  }

  /** Another API with the same database and nodes, in the place of a second process or of this one after a restart. */
  async createApi(config: Partial<ApiConfig> = {}, clock?: Clock): Promise<Api> {
    return await this.#createApi(this.store, config, clock ?? this.store.clock);
  }

  /** A second API process that works at the same time. On PostgreSQL it runs on another host, whose clock is behind. */
  async createSecond(config: Partial<ApiConfig> = {}): Promise<Api> {
    if (!this.databaseUrl.startsWith("postgres")) return await this.createApi({ ownerId: "api2", ...config });
    const stack = new AsyncDisposableStack();
    const api = await this.createApiElsewhere(stack, -SKEW_MS, { ownerId: "api2", ...config });
    return { ...api, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }

  /** An API on another host whose clock differs by `skewMs`. The stack closes its store. */
  async createApiElsewhere(stack: AsyncDisposableStack, skewMs: number, config: Partial<ApiConfig>): Promise<Api> {
    const store = stack.use(await openStore(this.databaseUrl, undefined, { machineClock: { now: () => Date.now() + skewMs } }));
    return stack.use(await this.#createApi(store, config, store.clock));
  }

  async #createApi(store: Store, config: Partial<ApiConfig>, clock: Clock): Promise<Api> {
    const nodes = this.nodes.map((node) => ({ nodeId: node.nodeId, url: node.url, client: node.client }));
    return await createApi(
      {
        host: "127.0.0.1",
        port: 0,
        limits: DEFAULT_LIMITS,
        buildsAtOnce: 2,
        buildCacheDays: 7,
        eventDays: 7,
        maxEvents: 100_000,
        maxUploadMb: 16,
        ownerId: "api1",
        agentVersion: "0.6.4",
        timing: TIMING,
        ...config,
      },
      {
        store,
        blobs: await openFolderBlobStore(await this.blobsDir),
        nodes: { list: () => nodes },
        secrets: { tokenSeed: new Secret("seed"), adminToken: new Secret(this.adminToken), encryptionKeys: this.encryptionKeys },
        clock,
        logger: createLogger({ name: "api", level: "info", fd: logFd() }),
      },
    );
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const key = options.key === undefined ? this.apiKey : options.key;
    const hasBody = options.body !== undefined || options.raw !== undefined;
    const response = await fetch((options.url ?? this.url) + path, {
      method,
      headers: {
        ...(key === null ? {} : { "X-API-Key": key }),
        ...(hasBody ? { "Content-Type": "application/json" } : {}),
        ...options.headers,
      },
      ...(hasBody ? { body: (options.raw ?? JSON.stringify(options.body)) as string } : {}),
    });
    const text = response.headers.get("content-type") === "text/event-stream" ? await beginningOf(response) : await response.text();
    const isJson = response.headers.get("content-type")?.includes("application/json") ?? false;
    return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined, headers: Object.fromEntries(response.headers) };
  }

  async create(body: Record<string, unknown> = {}, options: CallOptions = {}): Promise<string> {
    const answer = await this.call("POST", "/v2/sandboxes", { body: { templateID: "base", ...body }, ...options });
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.text}`);
    return answer.body.sandboxID;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.nodes) {
      node.kill = "ok";
      node.deleteImage = "ok";
      node.lost.clear();
      node.release();
    }
    await this.api.close();
    await this.store.close();
    await rm(await this.blobsDir, { recursive: true, force: true });
  }

  async #seed(): Promise<void> {
    const { identity, templates } = this.store;
    const secrets = { apiKey: new Secret(this.apiKey), accessToken: new Secret(this.accessToken) };
    await seedIdentity(this.store, { teamId: this.teamId, userId: randomUUID(), ...secrets }, systemClock);
    const now = Date.now();
    const otherTeam = randomUUID();
    await identity.putTeam({ id: otherTeam, slug: "other", name: "Other", createdAt: now });
    await identity.addApiKey({
      ...credentialOf(new Secret(this.otherKey), { prefix: API_KEY_PREFIX, name: "x", now }),
      teamId: otherTeam,
    });
    await templates.putTemplate({ id: this.templateId, teamId: this.teamId, isPublic: true, now });
    await templates.putAlias({ namespace: "", alias: "base", templateId: this.templateId, now });
    await templates.addBuild(
      {
        id: this.buildId,
        templateId: this.templateId,
        status: "ready",
        cpuCount: 2,
        memoryMb: 512,
        diskSizeMb: 1024,
        layers: [`sha256:${"a".repeat(64)}`],
        defaultUser: "user",
        defaultWorkdir: "/home/user",
        agentVersion: "",
        createdAt: now,
        image: null,
      },
      "default",
    );
  }
}

/** Of a stream that does not end by itself. */
async function beginningOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

/** Most tests provoke failures, so the log is shown only on demand (`TEST_LOG`). */
function logFd(): number {
  return process.env.TEST_LOG === undefined ? openSync("/dev/null", "w") : 2;
}

export interface TestDatabases extends AsyncDisposable {
  /** A new database of that kind, with all tables and no rows. */
  create(kind: "sqlite" | "postgres"): Promise<string>;
}

/** Creates databases of both kinds for one test file. */
export async function startDatabases(): Promise<TestDatabases> {
  const folder = await mkdtemp(join(tmpdir(), "skerry-store-"));
  const template = join(folder, "template.db");
  await using databases = new AsyncDisposableStack();
  databases.defer(() => rm(folder, { recursive: true, force: true }));
  await (await openStore(`sqlite:${template}`)).close();
  let count = 0;
  const owned = databases.move();
  return {
    async create(kind) {
      if (kind === "postgres") return owned.use(await createPostgresDatabase({ migrated: true })).url;
      count += 1;
      const path = join(folder, `${count}.db`);
      await copyFile(template, path);
      return `sqlite:${path}`;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
