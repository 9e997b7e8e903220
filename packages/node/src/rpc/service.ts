import { availableParallelism, totalmem } from "node:os";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { noteInTrace } from "@skerry/telemetry";
import { decodeOptions, type NodeService, type ReadinessSchema, StartKind } from "@skerry/wire/node";
import type { Builds } from "../builds/builds.ts";
import type { NodeConfig } from "../config.ts";
import type { EgressBatch } from "../egress-log/egress-book.ts";
import type { EgressLog } from "../egress-log/egress-log.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { UnusedLayers } from "../layers/unused-layers.privileged.ts";
import type { OutputBatch } from "../output-log/output-book.ts";
import type { OutputLog } from "../output-log/output-log.ts";
import { type ImageRecord, memoryBytes } from "../records/image-record.ts";
import { memoryLostBy } from "../sandboxes/keeper.privileged.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Started } from "../sandboxes/starter.ts";
import type { SandboxUsage, UsageMeter } from "../usage/usage-meter.ts";
import type { VolumeStore } from "../volumes/volume-store.privileged.ts";
import { buildCalls } from "./build-calls.ts";
import { encodeErrors, rpcError } from "./encode-errors.ts";
import { Machine } from "./machine.ts";
import { volumeCalls } from "./volume-calls.ts";

export interface ServiceOptions {
  readonly config: NodeConfig;
  readonly sandboxes: Sandboxes;
  readonly images: ImageStore;
  readonly layers: UnusedLayers;
  readonly builds: Builds;
  readonly usage: UsageMeter;
  readonly volumes: VolumeStore;
  readonly egressLog: EgressLog;
  readonly outputLog: OutputLog;
  readiness(): MessageInitShape<typeof ReadinessSchema>;
}

/** Rounds in one answer, to bound its size. */
const ROUNDS_AT_ONCE = 12;

/** The node's RPC (spec/node/node.proto) on top of its sandboxes. */
export function nodeService({
  config,
  sandboxes,
  images,
  layers,
  builds,
  usage,
  volumes,
  egressLog,
  outputLog,
  readiness,
}: ServiceOptions): ServiceImpl<typeof NodeService> {
  const machine = new Machine(config.dir);
  return {
    ...buildCalls(config, builds),
    ...volumeCalls(config, volumes),
    async getInfo() {
      return {
        nodeId: config.nodeId,
        agentVersion: config.agents.current.version,
        runtimes: config.runtimes.map((runtime) => runtime.name),
        cpuCount: availableParallelism(),
        memoryTotalBytes: BigInt(totalmem()),
        sandboxCount: sandboxes.list().length,
        keepsMemory: config.runtimes[0]?.capabilities.checkpoint ?? false,
        machine: await machine.read(),
        readiness: readiness(),
      };
    },
    async createSandbox({ spec }) {
      if (!spec) throw rpcError("invalid_argument", "spec is missing");
      return encodeStarted(await encodeErrors(config, () => sandboxes.create(spec)));
    },
    async killSandbox({ sandboxId }) {
      return { existed: await encodeErrors(config, () => sandboxes.kill(sandboxId)) };
    },
    async setSandboxOptions({ sandboxId, options, secrets }) {
      if (!options) throw rpcError("invalid_argument", "options are missing");
      await encodeErrors(config, () => sandboxes.setOptions(sandboxId, decodeOptions(options), secrets));
      return {};
    },
    async setSandboxSecrets({ sandboxId, secrets }) {
      if (!secrets) throw rpcError("invalid_argument", "secrets are missing");
      await encodeErrors(config, () => sandboxes.setSecrets(sandboxId, secrets));
      return {};
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
    async readUsage({ afterMs }) {
      const rounds = usage.after(Number(afterMs), ROUNDS_AT_ONCE);
      return {
        nowMs: BigInt(Date.now()),
        rounds: rounds.map(({ atMs, sandboxes: measured }) => ({ atMs: BigInt(atMs), sandboxes: measured.map(encodeUsage) })),
      };
    },
    async readEgress({ source, number }) {
      const batch = egressLog.read({ source, number: Number(number) });
      return { nowMs: BigInt(Date.now()), ...(batch && { batch: encodeEgress(batch) }) };
    },
    async readOutput({ source, number }) {
      const batch = outputLog.read({ source, number: Number(number) });
      return { nowMs: BigInt(Date.now()), ...(batch && { batch: encodeOutput(batch) }) };
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

const START_KINDS = { boot: StartKind.BOOT, restore: StartKind.RESTORE, claim: StartKind.CLAIM } as const;

function encodeStarted({ record, kind, memoryLostReason }: Started) {
  noteInTrace({ "skerry.start_kind": kind, "skerry.runtime": record.runtime });
  return { runtime: record.runtime, agentVersion: record.agent.version, startKind: START_KINDS[kind], memoryLostReason };
}

function encodeUsage(usage: SandboxUsage) {
  return {
    ...usage,
    memoryUsedBytes: BigInt(usage.memoryUsedBytes),
    memoryTotalBytes: BigInt(usage.memoryTotalBytes),
    memoryCacheBytes: BigInt(usage.memoryCacheBytes),
    diskUsedBytes: BigInt(usage.diskUsedBytes),
    diskTotalBytes: BigInt(usage.diskTotalBytes),
  };
}

function encodeOutput({ source, number, lines }: OutputBatch) {
  return {
    source,
    number: BigInt(number),
    lines: lines.map(({ source: agentSource, number: lineNumber, timeMs, ...line }) => ({
      ...line,
      agentSource,
      number: BigInt(lineNumber),
      atMs: BigInt(Math.round(timeMs)),
    })),
  };
}

function encodeEgress({ source, number, lines, counts }: EgressBatch) {
  return {
    source,
    number: BigInt(number),
    lines: lines.map((line) => ({
      ...line,
      atMs: BigInt(line.timeMs),
      sentBytes: BigInt(line.sentBytes),
      receivedBytes: BigInt(line.receivedBytes),
      isAllowed: line.verdict === "allowed",
      count: BigInt(line.count),
    })),
    counts: counts.map((one) => ({
      sandboxId: one.sandboxId,
      sentBytes: BigInt(one.sentBytes),
      receivedBytes: BigInt(one.receivedBytes),
      connections: BigInt(one.connections),
      refused: BigInt(one.refused),
    })),
  };
}

function encodeImage(image: ImageRecord) {
  return { hasMemory: image.memory !== undefined, sizeBytes: BigInt(memoryBytes(image)) };
}

/** The id becomes the name of a folder. */
function assertImageId(imageId: string): void {
  if (!/^[a-z0-9]{20}$/.test(imageId)) throw rpcError("invalid_argument", `not an image id: ${imageId.slice(0, 100)}`);
}
