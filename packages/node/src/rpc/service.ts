import { availableParallelism, totalmem } from "node:os";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import { type NodeService, StartKind } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import { memoryBytes } from "../images/image.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Started } from "../sandboxes/starter.ts";

const CODES: Readonly<Record<string, Code>> = {
  invalid_argument: Code.InvalidArgument,
  already_exists: Code.AlreadyExists,
  capacity_unavailable: Code.ResourceExhausted,
  runtime_unavailable: Code.FailedPrecondition,
  layer_missing: Code.FailedPrecondition,
  network_pool_empty: Code.ResourceExhausted,
  sandbox_gone: Code.NotFound,
  image_missing: Code.NotFound,
  guest_unresponsive: Code.Unavailable,
};

/** The node's RPC (spec/node/node.proto) on top of its sandboxes. */
export function nodeService(config: NodeConfig, sandboxes: Sandboxes, images: ImageStore): ServiceImpl<typeof NodeService> {
  return {
    async getInfo() {
      return {
        nodeId: config.nodeId,
        agentVersion: config.agent.version,
        runtimes: config.runtimes.map((runtime) => runtime.name),
        cpuCount: availableParallelism(),
        memoryTotalBytes: BigInt(totalmem()),
        sandboxCount: sandboxes.list().length,
        keepsMemory: config.runtimes[0]?.capabilities.checkpoint ?? false,
      };
    },
    async createSandbox({ spec }) {
      if (!spec) throw new ConnectError("spec is missing", Code.InvalidArgument);
      return encodeStarted(await encodeErrors(() => sandboxes.create(spec)));
    },
    async killSandbox({ sandboxId }) {
      return { existed: await encodeErrors(() => sandboxes.kill(sandboxId)) };
    },
    async pauseSandbox(request) {
      assertImageId(request.imageId);
      const { image, sizeBytes } = await encodeErrors(() => sandboxes.pause(request));
      return { hasMemory: image.memory !== undefined, agentUnresponsive: image.agentUnresponsive, sizeBytes: BigInt(sizeBytes) };
    },
    async resumeSandbox({ spec }) {
      if (!spec) throw new ConnectError("spec is missing", Code.InvalidArgument);
      return encodeStarted(await encodeErrors(() => sandboxes.resume(spec)));
    },
    async snapshotSandbox(request) {
      assertImageId(request.imageId);
      const image = await encodeErrors(() => sandboxes.snapshot(request));
      return { hasMemory: image.memory !== undefined, sizeBytes: BigInt(memoryBytes(image)) };
    },
    async deleteImage({ imageId }) {
      return { existed: await encodeErrors(() => sandboxes.deleteImage(imageId)) };
    },
    async listImages() {
      const theirs = images.list().filter(({ kind }) => kind !== "template");
      return { imageIds: theirs.map(({ imageId }) => imageId) };
    },
    async listSandboxes() {
      return { sandboxes: sandboxes.list(), unaskedEnds: sandboxes.unaskedEnds() };
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

const START_KINDS = { boot: StartKind.BOOT, restore: StartKind.RESTORE, claim: StartKind.CLAIM } as const;

function encodeStarted({ record, kind, memoryLostReason }: Started) {
  return { runtime: record.runtime, agentVersion: record.agentVersion, startKind: START_KINDS[kind], memoryLostReason };
}

/** It becomes the name of a folder. */
function assertImageId(imageId: string): void {
  if (!/^[a-z0-9]{20}$/.test(imageId)) throw new ConnectError(`not an image id: ${imageId.slice(0, 100)}`, Code.InvalidArgument);
}
