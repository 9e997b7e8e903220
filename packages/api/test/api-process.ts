// An API in a process of its own, for tests that kill it. Its environment names the database and the node. It prints its address when it
// listens.
import { writeSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createApi, DEFAULT_LIMITS } from "@skerry/api";
import { createLogger, Secret } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { openStore } from "@skerry/store";
import { NodeService } from "@skerry/wire/node";

const { DATABASE_URL = "", NODE_URL = "", BLOBS_DIR = "", MAX_SANDBOXES = "100", OWNER_ID = "api-process" } = process.env;
const store = await openStore(DATABASE_URL);
const client = createClient(NodeService, createConnectTransport({ baseUrl: NODE_URL, httpVersion: "1.1" }));
const { nodeId } = await client.getInfo({});
const api = await createApi(
  {
    host: "127.0.0.1",
    port: 0,
    limits: { ...DEFAULT_LIMITS, sandboxes: Number(MAX_SANDBOXES) },
    buildsAtOnce: 2,
    buildCacheDays: 7,
    eventDays: 7,
    maxEvents: 100_000,
    webhookNetworks: ["127.0.0.1"],
    maxUploadMb: 16,
    ownerId: OWNER_ID,
    agentVersion: "0.6.4",
  },
  {
    store,
    blobs: await openFolderBlobStore(BLOBS_DIR),
    nodes: { list: () => [{ nodeId, url: NODE_URL, client }] },
    secrets: { tokenSeed: new Secret("seed"), adminToken: new Secret("admin"), encryptionKeys: [new Secret(Buffer.alloc(32))] },
    clock: store.clock,
    logger: createLogger({ name: "api", level: "info", fd: 2 }),
  },
);
const { url } = await api.listen();
writeSync(1, `${url}\n`);
