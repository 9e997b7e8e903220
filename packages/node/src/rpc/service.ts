import { availableParallelism, totalmem } from "node:os";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { NodeService } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";

const CODES: Readonly<Record<string, Code>> = {
  invalid_argument: Code.InvalidArgument,
  already_exists: Code.AlreadyExists,
  capacity_unavailable: Code.ResourceExhausted,
  runtime_unavailable: Code.FailedPrecondition,
  layer_missing: Code.FailedPrecondition,
  network_pool_empty: Code.ResourceExhausted,
};

/** The node's RPC (spec/node/node.proto) on top of its sandboxes. */
export function nodeService(config: NodeConfig, sandboxes: Sandboxes): ServiceImpl<typeof NodeService> {
  return {
    async getInfo() {
      return {
        nodeId: config.nodeId,
        agentVersion: config.agent.version,
        runtimes: config.runtimes.map((runtime) => runtime.name),
        cpuCount: availableParallelism(),
        memoryTotalBytes: BigInt(totalmem()),
        sandboxCount: sandboxes.list().length,
      };
    },
    async createSandbox({ spec }) {
      if (!spec) throw new ConnectError("spec is missing", Code.InvalidArgument);
      const record = await encodeErrors(() => sandboxes.create(spec));
      return { runtime: record.runtime, agentVersion: record.agentVersion };
    },
    async killSandbox({ sandboxId }) {
      return { existed: await encodeErrors(() => sandboxes.kill(sandboxId)) };
    },
    async pauseSandbox() {
      throw notBuilt("pausing");
    },
    async resumeSandbox() {
      throw notBuilt("resuming");
    },
    async snapshotSandbox() {
      throw notBuilt("taking snapshots");
    },
    async deleteImage() {
      throw notBuilt("deleting images");
    },
    async listImages() {
      return { imageIds: [] };
    },
    async listSandboxes() {
      return { sandboxes: sandboxes.list().map(({ sandboxId, state }) => ({ sandboxId, state })) };
    },
  };
}

async function encodeErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    throw new ConnectError(error.publicMessage ?? error.message, CODES[error.code] ?? Code.Internal, undefined, undefined, error);
  }
}

function notBuilt(what: string): ConnectError {
  return new ConnectError(`${what} is not built yet`, Code.Unimplemented);
}
