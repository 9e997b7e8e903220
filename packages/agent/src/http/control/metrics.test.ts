import fileSystem from "node:fs/promises";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { expect, it, vi } from "vitest";
import { AgentState } from "../../state.ts";
import { handle, type Pipeline } from "../pipeline.ts";
import { metrics } from "./metrics.ts";

it("answers 500 with nothing when the system does not say what is used", async () => {
  const pipeline: Pipeline = {
    state: new AgentState({ path: "/bin" }),
    routes: new Map([["/metrics", { GET: metrics }]]),
    rpc: { prefixes: [], load: async () => new Map() },
    log: () => {},
  };
  const server = createServer((req, res) => void handle(pipeline, req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const statfs = vi.spyOn(fileSystem, "statfs").mockRejectedValue(new Error("EIO"));
  syncBuiltinESMExports();
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
    expect({ status: response.status, body: await response.text(), cache: response.headers.get("cache-control") }).toEqual({
      status: 500,
      body: "",
      cache: "no-store",
    });
  } finally {
    statfs.mockRestore();
    syncBuiltinESMExports();
    server.closeAllConnections();
    server.close();
  }
});
