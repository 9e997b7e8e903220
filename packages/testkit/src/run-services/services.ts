// Servers that many test files share: one PostgreSQL server, and one platform for each runtime. They belong to the test runner's process,
// start with the first request, and stop at the end of the run.

import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { type Platform, startPlatform } from "../platform.ts";
import { withOwnTeam } from "./own-team.ts";
import { PostgresDatabases } from "./postgres-databases.ts";
import type { RunServicesProtocol } from "./protocol.ts";

/** On gVisor a pooled sandbox costs a quarter less CPU time than a booted one. On runc there is little difference. */
const POOL_SIZES = { gvisor: "2", runc: "0" };

type Path = keyof RunServicesProtocol;
type Handlers = {
  readonly [P in Path]: (request: RunServicesProtocol[P]["request"]) => Promise<RunServicesProtocol[P]["response"]>;
};

export interface RunServices extends AsyncDisposable {
  readonly url: string;
}

export async function startRunServices(): Promise<RunServices> {
  const databases = new PostgresDatabases();
  const platforms = new Map<string, Promise<Platform>>();
  const platformOf = (runtime: "gvisor" | "runc") => {
    const platform = platforms.get(runtime) ?? startPlatform({ runtime, env: { SKERRY_POOL_SIZE: POOL_SIZES[runtime] } });
    platforms.set(runtime, platform);
    return platform;
  };
  const handlers: Handlers = {
    "/postgres/create": async ({ migrated }) => ({ url: await databases.create({ migrated }) }),
    "/postgres/drop": async ({ url }) => {
      await databases.drop(url);
      return {};
    },
    "/platform": async ({ runtime }) => await withOwnTeam(await platformOf(runtime)),
  };
  // Other programs on this machine could find the port, and must not get the keys of a platform.
  const token = randomBytes(16).toString("hex");
  const server = createServer((request, response) => void answer({ handlers, token, request, response }));
  // A test may take long between two calls, and the server must not end the connection just when the next one begins.
  server.keepAliveTimeout = 3_600_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${token}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      const endings = [...platforms.values()].map(async (platform) => (await platform)[Symbol.asyncDispose]());
      const results = await Promise.allSettled([...endings, databases[Symbol.asyncDispose]()]);
      const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
      if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("\n"));
    },
  };
}

async function answer(call: { handlers: Handlers; token: string; request: IncomingMessage; response: ServerResponse }): Promise<void> {
  const { handlers, token, request, response } = call;
  const path = (request.url ?? "").slice(token.length + 1);
  if (!request.url?.startsWith(`/${token}/`) || !Object.hasOwn(handlers, path)) {
    response.writeHead(404).end();
    return;
  }
  try {
    const result = await handlers[path as Path]((await json(request)) as never);
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(result));
  } catch (error) {
    response.writeHead(500).end(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
