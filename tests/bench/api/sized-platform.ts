import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Api, createApi, DEFAULT_LIMITS, newEncryptionKey, parseEncryptionKeys, seedIdentity } from "@skerry/api";
import { createLogger, Secret } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { openStore, type Store } from "@skerry/store";
import { FakeNode, startPostgres } from "@skerry/testkit";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Client } from "pg";

const NEVER_MS = 3_600_000;

export interface Size {
  readonly sandboxes: number;
  /** At least this many. Default: those of one sandbox. */
  readonly events?: number;
}

/** An API whose team has a number of sandboxes and events. */
export interface SizedPlatform extends AsyncDisposable {
  readonly kind: "sqlite" | "postgres";
  readonly keys: Readonly<Record<"scoped" | "metadata" | "token" | "scopedToken", string>>;
  create(): Promise<string>;
  kill(id: string): Promise<void>;
  get(key?: string): Promise<void>;
  list(): Promise<void>;
  /** One page of events. `query` as in the URL. */
  events(query: string): Promise<readonly { readonly subject_id: string }[]>;
  account(token: string): Promise<void>;
  health(): Promise<void>;
}

export async function openPlatform(kind: "sqlite" | "postgres", { sandboxes, events = 0 }: Size): Promise<SizedPlatform> {
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "skerry-bench-api-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  let url = `sqlite:${join(folder, "skerry.db")}`;
  if (kind === "postgres") url = await stack.use(await startPostgres()).createDatabase("skerry");
  const store = stack.use(await openStore(url));
  const apiKey = `e2b_${randomBytes(20).toString("hex")}`;
  const accessToken = `sk_e2b_${randomBytes(20).toString("hex")}`;
  const ids = { teamId: randomUUID(), userId: randomUUID() };
  await seedIdentity(store, { ...ids, apiKey: new Secret(apiKey), accessToken: new Secret(accessToken) }, store.clock);
  await addTemplate(store, ids.teamId);
  const api = stack.use(await createBenchApi(store, folder));
  const { url: base } = await api.listen();
  const call = async (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const init = { method, headers: { "Content-Type": "application/json", ...headers }, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(base + path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text === "" || response.headers.get("content-type")?.startsWith("text/") ? {} : JSON.parse(text);
  };
  const asTeam = (key = apiKey) => ({ "X-API-Key": key });
  const asUser = (token = accessToken) => ({ Authorization: `Bearer ${token}` });
  const create = async (): Promise<string> => {
    const made = await call("POST", "/v2/sandboxes", asTeam(), { templateID: "base", timeout: 3000, metadata: { purpose: "bench" } });
    return made.sandboxID;
  };
  const sandboxId = await create();
  await copyRow(url, sandboxId, sandboxes - 1);
  if (events > 0) {
    await waitUntil("the first event has its number", async () => (await call("GET", "/events", asTeam())).length > 0);
    await copyEvents(url, events);
  }
  const made = (path: string, body: object) => call("POST", path, asUser(), { name: "bench", ...body });
  const keys = {
    scoped: (await made("/api-keys", { scopes: ["sandboxes:read", "templates:read"] })).key,
    metadata: (await made("/api-keys", { sandboxMetadata: { purpose: "bench" } })).key,
    token: accessToken,
    scopedToken: (await made("/access-tokens", { scopes: ["account:read"] })).token,
  };
  return {
    kind,
    keys,
    create,
    kill: async (id) => await call("DELETE", `/sandboxes/${id}`, asTeam()),
    get: async (key) => await call("GET", `/sandboxes/${sandboxId}`, asTeam(key)),
    list: async () => await call("GET", "/v2/sandboxes?limit=100", asTeam()),
    events: async (query) => await call("GET", `/events?${query}`, asTeam()),
    account: async (token) => await call("GET", "/account", asUser(token)),
    health: async () => await call("GET", "/health", {}),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function createBenchApi(store: Store, folder: string): Promise<Api> {
  const node = new FakeNode("node1");
  const never = { reconcileMs: NEVER_MS, expiryScanMs: NEVER_MS, metricsMs: NEVER_MS };
  return await createApi(
    {
      host: "127.0.0.1",
      port: 0,
      limits: { ...DEFAULT_LIMITS, sandboxes: 1_000_000 },
      buildsAtOnce: 1,
      buildCacheDays: 7,
      eventDays: 365,
      maxEvents: 10_000_000,
      maxUploadMb: 16,
      ownerId: "bench",
      agentVersion: "0.6.4",
      // The node does not have the rows that are added below. Nobody may notice while the bench runs.
      timing: never,
    },
    {
      store,
      blobs: await openFolderBlobStore(folder),
      nodes: { list: () => [{ nodeId: node.nodeId, url: node.url, client: node.client }] },
      secrets: {
        tokenSeed: new Secret("seed"),
        adminToken: new Secret(randomUUID()),
        encryptionKeys: parseEncryptionKeys(newEncryptionKey(), "keys"),
      },
      clock: store.clock,
      logger: createLogger({ name: "api", level: "error", fd: 2 }),
    },
  );
}

async function addTemplate({ templates, clock }: Store, teamId: string): Promise<void> {
  const now = clock.now();
  const id = `tpl${randomBytes(8).toString("hex")}`;
  await templates.putTemplate({ id, teamId, isPublic: true, now });
  await templates.putAlias({ namespace: "", alias: "base", templateId: id, now });
  await templates.addBuild(
    {
      id: randomUUID(),
      templateId: id,
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

/** Of ten copies of the sandbox's row, one runs, four are paused and five have ended. */
async function copyRow(url: string, sandboxId: string, copies: number): Promise<void> {
  if (copies === 0) return;
  const state = "case when i % 10 = 0 then 'running' when i % 10 < 5 then 'paused' else 'ended' end";
  const replaced: Record<string, string> = {
    id: url.startsWith("sqlite") ? "'i' || printf('%019x', i)" : "'i' || lpad(to_hex(i), 19, '0')",
    state,
    listed: "case when i % 10 = 0 then 'running' when i % 10 < 5 then 'paused' end",
    ended_at: "case when i % 10 >= 5 then started_at + i end",
    started_at: "started_at - i",
  };
  await copyRows(url, { table: "sandboxes", where: `id = '${sandboxId}'`, copies, replaced });
}

/** Copies of the first event, each of another sandbox and a second later. */
async function copyEvents(url: string, copies: number): Promise<void> {
  const replaced = { number: "number + i", sequence: "sequence + i", id: "id || '-' || i", subject_id: "'i' || i", at: "at + 1000 * i" };
  await copyRows(url, { table: "events", where: "number = 1", copies, replaced });
}

interface Copies {
  readonly table: string;
  /** The row. */
  readonly where: string;
  readonly copies: number;
  /** Expressions of the columns that differ. `i` counts the copies from 1. */
  readonly replaced: Readonly<Record<string, string>>;
}

async function copyRows(url: string, { table, where, copies, replaced }: Copies): Promise<void> {
  const insert = (columns: readonly string[], numbers: string) =>
    `insert into ${table} (${columns.join(", ")}) select ${columns.map((name) => replaced[name] ?? name).join(", ")} from ${table}, ${numbers} where ${where}`;
  if (url.startsWith("sqlite:")) {
    const db = new DatabaseSync(url.slice("sqlite:".length));
    const columns = db.prepare("select name from pragma_table_info(?)").all(table) as { name: string }[];
    const numbers = `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${copies}) select i from n)`;
    db.exec(
      insert(
        columns.map(({ name }) => name),
        numbers,
      ),
    );
    db.close();
    return;
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("select column_name as name from information_schema.columns where table_name = $1", [table]);
  await client.query(
    insert(
      rows.map(({ name }) => name),
      `generate_series(1, ${copies}) as numbers(i)`,
    ),
  );
  // As the database does by itself after a while.
  await client.query(`vacuum analyze ${table}`);
  await client.end();
}
