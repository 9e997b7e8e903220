import { availableParallelism, totalmem } from "node:os";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import { NODE_CAUSE_HEADER, SCARCITY_CAUSE, SILENT_CAUSE, UNSAVABLE_CAUSE } from "@skerry/wire";
import { type NodeService, StartKind } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { type ImageRecord, memoryBytes } from "../records/image-record.ts";
import { memoryLostBy } from "../sandboxes/keeper.privileged.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Started } from "../sandboxes/starter.ts";
import { scarcityOf } from "./scarcity.privileged.ts";

const CODES: Readonly<Record<string, Code>> = {
  invalid_argument: Code.InvalidArgument,
  already_exists: Code.AlreadyExists,
  capacity_unavailable: Code.ResourceExhausted,
  memory_unavailable: Code.ResourceExhausted,
  runtime_unavailable: Code.FailedPrecondition,
  layer_missing: Code.FailedPrecondition,
  disk_space_unavailable: Code.ResourceExhausted,
  layer_chain_too_long: Code.ResourceExhausted,
  root_read_only: Code.ResourceExhausted,
  links_not_kept: Code.ResourceExhausted,
  network_pool_empty: Code.ResourceExhausted,
  sandbox_gone: Code.NotFound,
  image_missing: Code.NotFound,
  image_damaged: Code.DataLoss,
  guest_unresponsive: Code.Unavailable,
  state_not_savable: Code.Aborted,
};

const CAUSES: Readonly<Record<string, string>> = {
  guest_unresponsive: SILENT_CAUSE,
  state_not_savable: UNSAVABLE_CAUSE,
  disk_space_unavailable: SCARCITY_CAUSE,
  memory_unavailable: SCARCITY_CAUSE,
  layer_chain_too_long: SCARCITY_CAUSE,
  root_read_only: SCARCITY_CAUSE,
  links_not_kept: SCARCITY_CAUSE,
};

/** The node's RPC (spec/node/node.proto) on top of its sandboxes. */
export function nodeService(config: NodeConfig, sandboxes: Sandboxes, images: ImageStore): ServiceImpl<typeof NodeService> {
  return {
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
      if (!spec) throw new ConnectError("spec is missing", Code.InvalidArgument);
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
      if (!spec) throw new ConnectError("spec is missing", Code.InvalidArgument);
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
    if (scarcity !== undefined) {
      throw new ConnectError(scarcity, Code.ResourceExhausted, { [NODE_CAUSE_HEADER]: SCARCITY_CAUSE }, undefined, error);
    }
    if (!(error instanceof PlatformError)) throw new ConnectError("an operation failed", Code.Internal, undefined, undefined, error);
    const cause = CAUSES[error.code];
    const metadata = cause === undefined ? undefined : { [NODE_CAUSE_HEADER]: cause };
    throw new ConnectError(error.publicMessage ?? error.message, CODES[error.code] ?? Code.Internal, metadata, undefined, error);
  }
}

const START_KINDS = { boot: StartKind.BOOT, restore: StartKind.RESTORE, claim: StartKind.CLAIM } as const;

function encodeStarted({ record, kind, memoryLostReason }: Started) {
  return { runtime: record.runtime, agentVersion: record.agent.version, startKind: START_KINDS[kind], memoryLostReason };
}

function encodeImage(image: ImageRecord) {
  return { hasMemory: image.memory !== undefined, sizeBytes: BigInt(memoryBytes(image)) };
}

/** It becomes the name of a folder. */
function assertImageId(imageId: string): void {
  if (!/^[a-z0-9]{20}$/.test(imageId)) throw new ConnectError(`not an image id: ${imageId.slice(0, 100)}`, Code.InvalidArgument);
}
