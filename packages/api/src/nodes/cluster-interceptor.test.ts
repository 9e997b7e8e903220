import { openSync } from "node:fs";
import { Code, ConnectError, createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { createLogger } from "@skerry/base";
import { CLUSTER_ID_HEADER } from "@skerry/wire";
import { NodeService } from "@skerry/wire/node";
import { expect, test } from "vitest";
import { clusterInterceptor } from "./cluster-interceptor.ts";

function clientOf(listSandboxes: ServiceImpl<typeof NodeService>["listSandboxes"]) {
  const service = { listSandboxes } as ServiceImpl<typeof NodeService>;
  const logger = createLogger({ name: "api", level: "error", fd: openSync("/dev/null", "w") });
  const transport = createRouterTransport((router) => router.service(NodeService, service), {
    transport: { interceptors: [clusterInterceptor("ours", logger)] },
  });
  return createClient(NodeService, transport);
}

test("each call says which cluster we are of", async () => {
  const seen: (string | null)[] = [];
  const client = clientOf((_request, { requestHeader }) => {
    seen.push(requestHeader.get(CLUSTER_ID_HEADER));
    return {};
  });
  await client.listSandboxes({});
  expect(seen).toEqual(["ours"]);
});

test("a node of another cluster is one that cannot be reached; other refusals stay what they are", async () => {
  const failing = (metadata: Record<string, string>) =>
    clientOf(() => {
      throw new ConnectError("not so", Code.FailedPrecondition, metadata);
    }).listSandboxes({});
  await expect(failing({ [CLUSTER_ID_HEADER]: "theirs" })).rejects.toMatchObject({ code: Code.Unavailable });
  await expect(failing({})).rejects.toMatchObject({ code: Code.FailedPrecondition });
});
