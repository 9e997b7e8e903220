// A node in a process of its own, for tests that kill it. The test that forked it controls it with messages.

import { agentCommand } from "@skerry/agent";
import { armCrashPoint, createLogger, Secret } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { openLayerStore } from "@skerry/layers";
import { createNode, type NodeConfig } from "@skerry/node";
import { createRuncRuntime, createRunscRuntime, readHostFacts } from "@skerry/runtime";
import { testAgents } from "@skerry/testkit/tools";

export interface NodeProcessOptions {
  readonly dir: string;
  readonly layersDir: string;
  readonly instance: string;
  readonly runtime: "gvisor" | "runc";
  readonly runsc: string;
  readonly runc: string;
  readonly poolSize: number;
  readonly secret: string;
  /** Time limit of runsc calls, in milliseconds. */
  readonly timeLimits?: { start?: number; control?: number; checkpoint?: number; destroy?: number };
}

export type ToNodeProcess = { arm: string | null } | { stop: true };
export type FromNodeProcess = { port: number } | { armed: string | null };

export async function nodeConfigOf(options: NodeProcessOptions): Promise<NodeConfig> {
  const { dir, instance, runtime } = options;
  const host = readHostFacts();
  const runtimes = [
    createRunscRuntime({
      binary: options.runsc,
      stateDir: `${dir}/runsc`,
      host,
      ...(options.timeLimits && { timeLimits: options.timeLimits }),
    }),
    createRuncRuntime({ binary: options.runc, stateDir: `${dir}/runc`, host }),
  ];
  return {
    nodeId: `test-${instance}`,
    instance,
    dir,
    runtimes: runtime === "gvisor" ? runtimes : runtimes.reverse(),
    layers: await openLayerStore(options.layersDir),
    agents: { ...testAgents(), command: agentCommand(process.arch === "arm64" ? "arm64" : "x64") },
    networkPool: undefined,
    resolvers: ["8.8.8.8"],
    maxConnections: 8192,
    ipv6: false,
    readySlots: 1,
    diskLimit: "file",
    readyAreas: 1,
    builds: { most: 2, cacheDays: 7, blobs: await openFolderBlobStore(`${dir}/blobs`) },
    // Tests wait until nothing is left on the host.
    emptyTrashAfterMs: 20,
    pool: { size: options.poolSize, memoryBudgetBytes: 2 ** 30, settleMs: 0 },
  };
}

async function main(options: NodeProcessOptions): Promise<void> {
  const logger = createLogger({ name: "node-process", level: "info", fd: 2 });
  const node = await createNode(await nodeConfigOf(options), logger);
  const listener = await node.listen({ host: "127.0.0.1", port: 0, secret: new Secret(options.secret) });
  const tell = (message: FromNodeProcess) => process.send?.(message);
  process.on("message", (message: ToNodeProcess) => {
    if ("stop" in message) {
      void listener
        .close()
        .then(() => node.close())
        .then(() => process.exit(0));
    } else {
      armCrashPoint(message.arm ?? undefined);
      tell({ armed: message.arm });
    }
  });
  tell({ port: listener.port });
}

if (process.argv[1] === import.meta.filename) await main(JSON.parse(process.argv[2] ?? "") as NodeProcessOptions);
