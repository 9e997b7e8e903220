import { availableParallelism, totalmem } from "node:os";
import { ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { PlatformError, type PlatformErrorCode } from "@skerry/base";
import { NODE_ERRORS, type NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema, type NodeService, StartKind } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { UnusedLayers } from "../layers/unused-layers.privileged.ts";
import { type ImageRecord, memoryBytes } from "../records/image-record.ts";
import { memoryLostBy } from "../sandboxes/keeper.privileged.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Started } from "../sandboxes/starter.ts";
import { buildCalls } from "./build-calls.ts";
import { scarcityOf } from "./scarcity.privileged.ts";

/** Error codes that have another name on the wire. A code that is neither here nor in NODE_ERRORS becomes "internal". */
const WIRE_CODES: Partial<Record<PlatformErrorCode, NodeErrorCode>> = {
  layer_digest_invalid: "invalid_argument",
  disk_space_unavailable: "machine_exhausted",
  memory_unavailable: "machine_exhausted",
  layer_chain_too_long: "machine_exhausted",
  root_read_only: "machine_exhausted",
  links_not_kept: "machine_exhausted",
  network_pool_empty: "capacity_unavailable",
};

export interface ServiceOptions {
  readonly config: NodeConfig;
  readonly sandboxes: Sandboxes;
  readonly images: ImageStore;
  readonly layers: UnusedLayers;
}

/** The node's RPC (spec/node/node.proto) on top of its sandboxes. */
export function nodeService({ config, sandboxes, images, layers }: ServiceOptions): ServiceImpl<typeof NodeService> {
  return {
    ...buildCalls(),
    async getInfo() {
      return {
        nodeId: config.nodeId,
        agentVersion: config.agents.current.version,
        runtimes: config.runtimes.map((runtime) => runtime.name),
        cpuCount: availableParallelism(),
        memoryTotalBytes: BigInt(totalmem()),
        sandboxCount: sandboxes.list().length,
        keepsMemory: config.runtimes[0]?.capabilities.checkpoint ?? false,
      };
    },
    async createSandbox({ spec }) {
      if (!spec) throw rpcError("invalid_argument", "spec is missing");
      return encodeStarted(await encodeErrors(config, () => sandboxes.create(spec)));
    },
    async killSandbox({ sandboxId }) {
      return { existed: await encodeErrors(config, () => sandboxes.kill(sandboxId)) };
    },
    async pauseSandbox(request) {
      assertImageId(request.imageId);
      const image = await encodeErrors(config, () => sandboxes.pause(request));
      const memoryLostReason = request.memory ? memoryLostBy(image) : "";
      return { ...encodeImage(image), agentUnresponsive: image.agentUnresponsive, memoryLostReason };
    },
    async resumeSandbox({ spec }) {
      if (!spec) throw rpcError("invalid_argument", "spec is missing");
      return encodeStarted(await encodeErrors(config, () => sandboxes.resume(spec)));
    },
    async snapshotSandbox(request) {
      assertImageId(request.imageId);
      const { image, memoryLostReason } = await encodeErrors(config, () => sandboxes.snapshot(request));
      return { ...encodeImage(image), memoryLostReason };
    },
    async deleteImage({ imageId }) {
      return { existed: await encodeErrors(config, () => sandboxes.deleteImage(imageId)) };
    },
    async listImages() {
      const theirs = images.list().filter(({ kind }) => kind !== "template");
      const diskOnly = theirs.filter(({ memory }) => memory === undefined);
      return {
        imageIds: [...theirs.map(({ imageId }) => imageId), ...images.damaged],
        diskOnlyIds: diskOnly.map(({ imageId }) => imageId),
      };
    },
    async listUnusedLayers() {
      return { digests: layers.list() };
    },
    async deleteLayer({ digest }) {
      return { removed: await encodeErrors(config, () => layers.delete(digest)) };
    },
    async listSandboxes() {
      const kept = sandboxes.kept().map((image) => {
        const { imageId, identity, kept: reason } = image;
        return { sandboxId: identity.sandboxId, imageId, reason: reason ?? "exited", ...encodeImage(image) };
      });
      return { sandboxes: sandboxes.list(), unaskedEnds: sandboxes.unaskedEnds(), kept };
    },
  };
}

async function encodeErrors<T>({ dir }: NodeConfig, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const scarcity = scarcityOf(error, dir);
    if (scarcity !== undefined) throw rpcError("machine_exhausted", scarcity, error);
    if (!(error instanceof PlatformError)) throw rpcError("internal", "an operation failed", error);
    throw rpcError(wireCodeOf(error.code), error.publicMessage ?? error.message, error);
  }
}

function wireCodeOf(code: PlatformErrorCode): NodeErrorCode {
  return WIRE_CODES[code] ?? (Object.hasOwn(NODE_ERRORS, code) ? (code as NodeErrorCode) : "internal");
}

function rpcError(code: NodeErrorCode, message: string, cause?: unknown): ConnectError {
  return new ConnectError(message, NODE_ERRORS[code], undefined, [{ desc: ErrorDetailSchema, value: { code } }], cause);
}

const START_KINDS = { boot: StartKind.BOOT, restore: StartKind.RESTORE, claim: StartKind.CLAIM } as const;

function encodeStarted({ record, kind, memoryLostReason }: Started) {
  return { runtime: record.runtime, agentVersion: record.agent.version, startKind: START_KINDS[kind], memoryLostReason };
}

function encodeImage(image: ImageRecord) {
  return { hasMemory: image.memory !== undefined, sizeBytes: BigInt(memoryBytes(image)) };
}

/** The id becomes the name of a folder. */
function assertImageId(imageId: string): void {
  if (!/^[a-z0-9]{20}$/.test(imageId)) throw rpcError("invalid_argument", `not an image id: ${imageId.slice(0, 100)}`);
}
