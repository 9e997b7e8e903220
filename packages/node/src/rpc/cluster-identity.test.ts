import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient, createRouterTransport, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { createLogger } from "@skerry/base";
import { CLUSTER_ID_HEADER } from "@skerry/wire";
import { NodeService } from "@skerry/wire/node";
import { expect, test } from "vitest";
import { ClusterIdentity, forOwnCluster } from "./cluster-identity.privileged.ts";

class Scene implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), "skerry-cluster-"));
  readonly file = join(this.dir, "cluster.json");
  held: string[] = [];
  killed: string[] = [];
  changes: { from: string; to: string }[] = [];
  identity = this.open();
  onList: () => Promise<void> = async () => {};

  open(): ClusterIdentity {
    const logger = createLogger({ name: "node", level: "error", fd: openSync("/dev/null", "w") });
    return new ClusterIdentity({
      file: this.file,
      holdsAnything: () => this.held.length > 0,
      onChange: (change) => this.changes.push(change),
      logger,
    });
  }

  /** As a control plane of that cluster; undefined: one that names none. */
  clientOf(clusterId?: string) {
    const name: Interceptor = (next) => (request) => {
      if (clusterId !== undefined) request.header.set(CLUSTER_ID_HEADER, clusterId);
      return next(request);
    };
    const service = {
      getInfo: () => ({ nodeId: "n" }),
      listSandboxes: async () => {
        await this.onList();
        return { sandboxes: this.held.map((sandboxId) => ({ sandboxId })) };
      },
      killSandbox: async ({ sandboxId }: { sandboxId: string }) => ({ existed: this.killed.push(sandboxId) > 0 }),
    } as unknown as ServiceImpl<typeof NodeService>;
    const guarded = forOwnCluster(service, this.identity);
    const transport = createRouterTransport((router) => router.service(NodeService, guarded), { transport: { interceptors: [name] } });
    return createClient(NodeService, transport);
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true });
  }
}

test("a node that holds sandboxes answers the cluster that it got them from, and no other, also after a restart", async () => {
  using scene = new Scene();
  await scene.clientOf("one").listSandboxes({});
  scene.held = ["ia"];
  for (const _start of [1, 2]) {
    expect((await scene.clientOf("one").killSandbox({ sandboxId: "ia" })).existed).toBe(true);
    await expect(scene.clientOf("two").killSandbox({ sandboxId: "ib" })).rejects.toMatchObject({ code: Code.FailedPrecondition });
    await expect(scene.clientOf().listSandboxes({})).rejects.toMatchObject({ code: Code.FailedPrecondition });
    scene.identity = scene.open();
  }
  expect(scene.killed).toEqual(["ia", "ia"]);
});

test("who is refused hears which cluster the node belongs to, and can ask; an operator finds it in the file", async () => {
  using scene = new Scene();
  await scene.clientOf("one").listSandboxes({});
  scene.held = ["ia"];
  const refused = await scene
    .clientOf("two")
    .listSandboxes({})
    .then(undefined, (error) => error);
  expect(refused.metadata.get(CLUSTER_ID_HEADER)).toBe("one");
  expect(refused.rawMessage).toContain(scene.file);
  expect(JSON.parse(readFileSync(scene.file, "utf8"))).toMatchObject({ id: "one", refused: { id: "two" } });
  scene.identity = scene.open();
  expect(await scene.clientOf("three").getInfo({})).toMatchObject({ nodeId: "n", clusterId: "one" });
  expect(JSON.parse(readFileSync(scene.file, "utf8"))).toMatchObject({ id: "one", refused: { id: "three" } });
});

test("a node that holds nothing follows who asks, and belongs to nobody", async () => {
  using scene = new Scene();
  for (const cluster of ["one", "two", "one"]) {
    await scene.clientOf(cluster).listSandboxes({});
    expect((await scene.clientOf().getInfo({})).clusterId).toBe("");
  }
  scene.held = ["ia"];
  expect((await scene.clientOf().getInfo({})).clusterId).toBe("one");
  expect(scene.changes.map(({ from, to }) => `${from}>${to}`)).toEqual([">one", "one>two", "two>one"]);
});

test("while a call is under way the node does not change sides: it may be about to make something", async () => {
  using scene = new Scene();
  const begun = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  scene.onList = () => {
    begun.resolve();
    return going.promise;
  };
  const first = scene.clientOf("one").listSandboxes({});
  await begun.promise;
  await expect(scene.clientOf("two").killSandbox({ sandboxId: "ia" })).rejects.toMatchObject({ code: Code.FailedPrecondition });
  going.resolve();
  await first;
  await scene.clientOf("two").killSandbox({ sandboxId: "ia" });
});

test("callers that name no cluster are served by a node that was never told one, as tools and tests are", async () => {
  using scene = new Scene();
  scene.held = ["ia"];
  expect((await scene.clientOf().listSandboxes({})).sandboxes).toHaveLength(1);
});
