import { createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { createLogger } from "@skerry/base";
import { startTracing, traced, traceHeader } from "@skerry/telemetry";
import { NodeService } from "@skerry/wire/node";
import { expect, it } from "vitest";
import { traceCalls } from "./trace-calls.ts";

it("calls continue the trace of their caller, and streams stay streams", async () => {
  const headers: (string | undefined)[] = [];
  const service = {
    killSandbox: async () => {
      headers.push(traceHeader());
      return { existed: true };
    },
    async *watchBuild() {
      headers.push(traceHeader());
      yield {};
      yield {};
    },
  } as Partial<ServiceImpl<typeof NodeService>> as ServiceImpl<typeof NodeService>;
  const client = createClient(
    NodeService,
    createRouterTransport((router) => router.service(NodeService, traceCalls(service))),
  );
  // Nothing listens there: spans are dropped.
  const stop = await startTracing({
    endpoint: "http://127.0.0.1:9",
    share: 1,
    version: "0",
    roles: ["node"],
    logger: createLogger({ name: "test", level: "error", fd: 2 }),
  });
  try {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    await client.killSandbox({ sandboxId: "i" }, { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } });
    expect(headers.splice(0)).toEqual([expect.stringMatching(new RegExp(`^00-${traceId}-(?!b7ad6b7169203331)`))]);
    await client.killSandbox({ sandboxId: "i" });
    expect(headers.splice(0)).toEqual([undefined]);
    let events = 0;
    await traced({ name: "outer" }, async () => {
      for await (const _ of client.watchBuild({ buildId: "b" })) events++;
    });
    expect(events).toBe(2);
  } finally {
    await stop();
  }
});
