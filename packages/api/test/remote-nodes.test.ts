// The directory of nodes on other hosts: real HTTP, nodes that only remember.

import { openSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { localNode, remoteNodes } from "@skerry/api";
import { createLogger, endingConnections, Secret } from "@skerry/base";
import { FakeNode } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService } from "@skerry/wire/node";
import { afterEach, expect, test } from "vitest";

const logger = createLogger({ name: "api", level: "error", fd: openSync("/dev/null", "w") });
const stack: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const end of stack.splice(0)) await end();
});

async function serve(
  node: FakeNode,
  { port = 0, clusterId = "" } = {},
): Promise<{ url: string; port: number; authorizations: Set<unknown> }> {
  const authorizations = new Set<unknown>();
  const service = { ...node.service, getInfo: () => ({ nodeId: node.nodeId, clusterId }) };
  const handle = connectNodeAdapter({ routes: (router) => router.service(NodeService, service) });
  const server: Server = createServer((request, response) => {
    authorizations.add(request.headers.authorization);
    handle(request, response);
  });
  stack.push(endingConnections(server));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const bound = (server.address() as AddressInfo).port;
  return { url: `http://127.0.0.1:${bound}`, port: bound, authorizations };
}

function directoryOf(...urls: string[]) {
  const nodes = remoteNodes({ urls, secret: new Secret("cluster secret"), clusterId: "ours", logger });
  stack.push(() => nodes.close());
  return nodes;
}

const idsOf = (nodes: ReturnType<typeof directoryOf>) => nodes.list().map(({ nodeId }) => nodeId);

test("all nodes that answer are listed, and every call carries the cluster secret", async () => {
  const [one, two] = [await serve(new FakeNode("one")), await serve(new FakeNode("two"), { clusterId: "ours" })];
  const nodes = directoryOf(one.url, two.url);
  await nodes.settled();
  expect(idsOf(nodes).sort()).toEqual(["one", "two"]);
  expect([...one.authorizations]).toEqual(["Bearer cluster secret"]);
});

test("startup does not wait for nodes that are down or of another cluster; a node is listed when it answers", async () => {
  const up = await serve(new FakeNode("up"));
  const theirs = await serve(new FakeNode("theirs"), { clusterId: "theirs" });
  const { port } = await serve(new FakeNode("gone"));
  await stack.pop()?.();
  const nodes = directoryOf(up.url, theirs.url, `http://127.0.0.1:${port}`);
  await nodes.settled();
  expect(idsOf(nodes)).toEqual(["up"]);
  await serve(new FakeNode("late"), { port });
  await waitUntil("the node is listed", () => idsOf(nodes).length > 1);
  expect(idsOf(nodes)).toEqual(["up", "late"]);
});

test("a node of this process that holds sandboxes of another cluster keeps the API from starting", async () => {
  const { service } = new FakeNode("here");
  const options = { service: { ...service, getInfo: () => ({ nodeId: "here", clusterId: "theirs" }) }, url: "http://here.test", logger };
  await expect(localNode({ ...options, clusterId: "ours" })).rejects.toMatchObject({ code: "config_invalid" });
  expect((await localNode({ ...options, clusterId: "theirs" })).list()).toMatchObject([{ nodeId: "here", url: "http://here.test" }]);
});
