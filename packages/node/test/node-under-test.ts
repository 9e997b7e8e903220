import { existsSync, linkSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, createRouterTransport } from "@connectrpc/connect";
import { agentCommand } from "@skerry/agent";
import { createLogger, Secret } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { copyTree, openLayerStore, parseLayerDigest } from "@skerry/layers";
import { cleanUpNode, createNode, type Node, type NodeConfig } from "@skerry/node";
import { createRuncRuntime, createRunscRuntime, readHostFacts } from "@skerry/runtime";
import { instanceOf } from "@skerry/testkit";
import { writeBusyboxImage } from "@skerry/testkit/busybox";
import { createTestNodeFolder } from "@skerry/testkit/run-folder";
import { testAgents, testTools } from "@skerry/testkit/tools";
import { NodeService, type SandboxSpecSchema } from "@skerry/wire/node";

export interface NodeUnderTest extends AsyncDisposable {
  readonly node: Node;
  readonly config: NodeConfig;
  readonly layer: string;
  readonly secret: Secret;
  readonly port: number;
  /** The RPC of the node that runs now. */
  readonly client: Client<typeof NodeService>;
  spec(sandboxId: string): Exclude<MessageInitShape<typeof SandboxSpecSchema>, Message>;
  /** Ends this node. Its sandboxes go on. */
  stop(): Promise<void>;
  /** Starts another node on the same folder. */
  start(changes?: Partial<NodeConfig>): Promise<void>;
  restart(changes?: Partial<NodeConfig>): Promise<void>;
}

interface NodeOptions {
  readonly poolSize?: number;
  /** Adds files to the layer. */
  readonly fill?: (dir: string) => void;
  readonly site?: NonNullable<NodeConfig["site"]>;
  /** For what the node logs. Default: that of errors. */
  readonly logFd?: number;
}

/** A real node on a folder of its own, with a busybox-only layer. */
export async function startNode(runtime: "gvisor" | "runc", options: NodeOptions = {}): Promise<NodeUnderTest> {
  const dir = await createTestNodeFolder();
  const instance = instanceOf(dir);
  const layers = await openLayerStore(join(dir, "layers"));
  const staged = await layers.stagingDir();
  writeBusyboxImage(staged);
  writeFileSync(join(staged, "home/linked"), "of the template");
  linkSync(join(staged, "home/linked"), join(staged, "home/linked-too"));
  options.fill?.(staged);
  const layer = await layers.adopt(staged);
  const host = readHostFacts();
  const runtimes = [
    createRunscRuntime({ binary: testTools().runsc, stateDir: join(dir, "node/runsc"), host }),
    createRuncRuntime({ binary: testTools().runc, stateDir: join(dir, "node/runc"), host }),
  ];
  const config: NodeConfig = {
    nodeId: `test-${instance}`,
    instance,
    dir: join(dir, "node"),
    runtimes: runtime === "gvisor" ? runtimes : runtimes.reverse(),
    layers,
    agents: { ...testAgents(), command: agentCommand(process.arch === "arm64" ? "arm64" : "x64") },
    networkPool: undefined,
    resolvers: ["8.8.8.8"],
    maxConnections: 8192,
    ipv6: false,
    ...(options.site ? { site: options.site } : {}),
    readySlots: 1,
    diskLimit: "file",
    readyAreas: 1,
    builds: { most: 2, cacheDays: 7, blobs: await openFolderBlobStore(join(dir, "blobs")) },
    // Tests wait until nothing is left.
    emptyTrashAfterMs: 20,
    pool: { size: options.poolSize ?? 0, memoryBudgetBytes: 2 ** 30, settleMs: 0 },
  };
  const logger = createLogger({ name: "node-under-test", level: "error", fd: options.logFd ?? 2 });
  const secret = new Secret("the cluster secret of this test");
  let node = await createNode(config, logger);
  let listener = await node.listen({ host: "127.0.0.1", port: 0, secret });
  const stop = async () => {
    await listener.close();
    await node.close();
  };
  const start = async (changes: Partial<NodeConfig> = {}) => {
    node = await createNode({ ...config, ...changes }, logger);
    listener = await node.listen({ host: "127.0.0.1", port: 0, secret });
  };
  return {
    get node() {
      return node;
    },
    get port() {
      return listener.port;
    },
    config,
    layer,
    secret,
    get client() {
      const { service } = node;
      return createClient(
        NodeService,
        createRouterTransport((router) => router.service(NodeService, service)),
      );
    },
    spec: (sandboxId) => ({
      sandboxId,
      templateId: "t",
      buildId: "b",
      layers: [layer],
      diskSizeMb: 64,
      cpuCount: 1,
      memoryMb: 256,
      accessToken: "a-token",
      options: {},
      defaultUser: "user",
    }),
    stop,
    start,
    async restart(changes) {
      await stop();
      await start(changes);
    },
    async [Symbol.asyncDispose]() {
      await listener.close();
      await node.close();
      await cleanUpNode(config, logger);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The digest of a layer for another template: that of the node, and one file more. */
export async function anotherLayer({ config: { layers }, layer }: NodeUnderTest) {
  const staged = await layers.stagingDir();
  await copyTree(await layers.path(parseLayerDigest(layer)), staged);
  writeFileSync(join(staged, "home/other"), "of another template");
  return await layers.adopt(staged);
}

/** Areas that something on disk refers to or that were left behind: all but the prepared ones, which are empty. */
export function areasInUse(under: NodeUnderTest): string[] {
  const dir = join(under.config.dir, "areas");
  return readdirSync(dir).filter((id) => entriesOf(join(dir, id, "fs/u")).length > 0);
}

/** None where the folder is just being removed. */
function entriesOf(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}
