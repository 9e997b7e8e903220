// Starts a sandbox from the layers of its template, or from an image with or without memory. When the memory cannot be restored, the sandbox
// boots from its disk: it loses its processes, and the caller gets the reason.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { newAreaId } from "@skerry/layers";
import type { NetworkSlot, Runtime } from "@skerry/runtime";
import { awaitAgent, initialiseAgent, untilHooksEnded } from "../agent/agent-client.ts";
import { agentWaitOf } from "../agent/agent-wait.ts";
import { warmUp } from "../agent/warm-up.ts";
import type { Containers, ContainersOptions, LiveContainer } from "../containers/containers.ts";
import { cgroupPathOf, type HostDeps, runtimeOf } from "../containers/host.privileged.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageUses } from "../images/image-uses.ts";
import { starts } from "../metrics.ts";
import { siteFor } from "../network/site-network.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import { withoutMissing } from "../volumes/sandbox-volumes.privileged.ts";
import { isSameMounts } from "../volumes/volume-mount.ts";
import { memoryLostBy } from "./keeper.privileged.ts";
import type { Owner } from "./owner.ts";
import { Phases } from "./phases.ts";

export interface StartPlan extends Owner {
  readonly containerId: string;
  /** "" for a container of the pool. */
  readonly sandboxId: string;
  readonly makeup: SandboxMakeup;
  readonly image?: ImageRecord;
  readonly withMemory: boolean;
  /** The container runs a step of a build: it has no sandbox, and its agent gets the identity at once. */
  readonly isBuild?: boolean;
}

export interface Started {
  readonly record: SandboxRecord;
  readonly kind: "boot" | "restore" | "claim";
  /** "" when no memory was lost. */
  readonly memoryLostReason: string;
  readonly hooksRun: boolean;
}

type Ready = Pick<Started, "record" | "hooksRun">;
type Way = "with memory" | { readonly memoryLost: string };

export interface StarterOptions {
  readonly deps: HostDeps;
  readonly images: ImageStore;
  readonly containers: Containers;
  readonly pools: ContainersOptions["pools"];
  readonly uses: ImageUses;
  readonly logger: Logger;
}

export class Starter {
  readonly #options: StarterOptions;

  constructor(options: StarterOptions) {
    this.#options = options;
  }

  /** Starts a container. After a failure nothing is left of it; the image stays. */
  async start(request: StartPlan): Promise<Started> {
    const { deps, logger } = this.#options;
    const plan = request.image ? { ...request, makeup: withoutMissing(deps.volumes, request.makeup, logger) } : request;
    const isRestorable = plan.image?.memory && plan.withMemory && isSameMounts(plan.image.volumes, plan.makeup.volumes);
    if (!plan.image || !isRestorable) {
      const memoryLostReason = plan.image && plan.withMemory ? memoryLostWith(plan.image, plan.makeup) : "";
      return { ...(await this.#counted("boot", plan, { memoryLost: memoryLostReason })), kind: "boot", memoryLostReason };
    }
    try {
      return { ...(await this.#counted("restore", plan, "with memory")), kind: "restore", memoryLostReason: "" };
    } catch (error) {
      if (!isMemoryFault(error)) throw error;
      const memoryLostReason = asError(error).message;
      const facts = { sandbox_id: plan.sandboxId, image_id: plan.image.imageId, err: asError(error) };
      this.#options.logger.error(facts, "the memory could not be restored; the sandbox boots from its disk");
      return { ...(await this.#counted("boot", plan, { memoryLost: memoryLostReason })), kind: "boot", memoryLostReason };
    }
  }

  async #counted(kind: "boot" | "restore", plan: StartPlan, how: Way): Promise<Ready> {
    try {
      const ready = await this.#attempt(plan, how);
      starts.inc({ kind, result: "ok" });
      return ready;
    } catch (error) {
      starts.inc({ kind, result: "failed" });
      throw error;
    }
  }

  /**
   * Finishes a start that a former daemon began: the memory was restored, and the agent not initialised yet. Throws when the process of the
   * sandbox has ended; an agent that does not answer is only logged.
   */
  async finish(live: LiveContainer): Promise<void> {
    const { record } = live;
    try {
      await initialiseAgent({
        ...agentWaitOf(record, { isRestored: true }),
        identity: record.identity,
        currentToken: record.identity.accessToken,
        // The control plane tells the secrets of the sandbox again, and with them its authority.
        site: siteFor(this.#options.deps.config, { image: { kind: "pause" }, isRestored: true, authority: "" }),
      });
    } catch (error) {
      if (!isSameProcess(record.process)) throw error;
      this.#options.logger.warn({ sandbox_id: record.sandboxId, err: asError(error) }, "the agent of a resumed sandbox does not answer");
    }
    this.#options.containers.set({ ...record, state: "running" });
  }

  async #attempt(plan: StartPlan, how: Way): Promise<Ready> {
    const { containers } = this.#options;
    const withMemory = how === "with memory";
    const phases = new Phases(withMemory ? "restore" : "boot");
    const slot = await this.#slotFor(plan);
    phases.mark("slot");
    if (plan.image && this.#options.images.get(plan.image.imageId) !== plan.image) {
      await containers.poolFor({ slot }).release(slot);
      throw new PlatformError("image_missing", `image ${plan.image.imageId} was deleted`);
    }
    // There must be no await from here to `add`, which marks the areas of the image as used.
    const extraMemoryBytes = (withMemory && plan.image?.memory?.extraMemoryBytes) || 0;
    const record: SandboxRecord = {
      ...this.#newRecord(plan, slot),
      isRestored: withMemory,
      ...(withMemory || how.memoryLost === "" ? {} : { memoryLost: how.memoryLost }),
      ...(extraMemoryBytes > 0 ? { extraMemoryBytes } : {}),
    };
    containers.add(record, { isBuild: plan.isBuild === true });
    const work = containers.extraMemory.lend(extraMemoryBytes, () => this.#run(plan, record, { withMemory, phases }));
    const imageId = plan.image?.imageId;
    if (imageId !== undefined) this.#options.uses.during(imageId, work);
    try {
      return await work;
    } catch (error) {
      await containers.tryToGiveBack(record);
      throw error;
    }
  }

  async #run(
    { image, sandboxId, secrets, isBuild = false }: StartPlan,
    record: SandboxRecord,
    { withMemory, phases }: { readonly withMemory: boolean; readonly phases: Phases },
  ): Promise<Ready> {
    const { containers, images } = this.#options;
    const memory = image && withMemory ? await images.memoryOf(image) : undefined;
    if (memory) phases.mark("checksums");
    const area = image?.local.area === record.area ? "written" : "new";
    const started = await containers.start({ record, area, ...(memory ? { memory } : {}) });
    phases.mark("runtime");
    const wait = agentWaitOf(started, { isRestored: memory !== undefined });
    const { config, policy } = this.#options.deps;
    policy.provide(record.slot, secrets);
    const authority = await policy.authorityOf(record.slot);
    const site = siteFor(config, { image, isRestored: memory !== undefined, authority });
    let hooksRun = false;
    if (sandboxId === "" && !isBuild) {
      // The start command of a template is limited like any other.
      await awaitAgent(wait, { site, ...(record.start && !memory ? { memoryMb: record.size.memoryMb } : {}) });
      await warmUp(wait.address);
    } else {
      const currentToken = memory ? (image?.identity.accessToken ?? "") : "";
      ({ hooksRun } = await initialiseAgent({ ...wait, identity: record.identity, currentToken, site }));
    }
    phases.mark("agent");
    crashPoint("start.agent-ready");
    const ready: SandboxRecord = {
      ...started,
      state: sandboxId === "" ? "pooled" : "running",
      ...(record.start && !memory ? { startOwed: true } : {}),
    };
    containers.set(ready);
    crashPoint("start.recorded-ready");
    return { record: ready, hooksRun };
  }

  #slotFor({ makeup, image }: StartPlan): Promise<NetworkSlot> {
    const { pools, deps } = this.#options;
    if (image?.local.owner) return pools.withUserNamespace.acquireNumber(image.local.owner.slotNumber);
    const runtime: Runtime = runtimeOf(deps.config, makeup.runtime);
    return (runtime.capabilities.userNamespace ? pools.withUserNamespace : pools.plain).acquire();
  }

  #newRecord(plan: StartPlan, slot: NetworkSlot): SandboxRecord {
    const { containerId, sandboxId, makeup, identity, options, image } = plan;
    const { deps } = this.#options;
    return {
      version: 3,
      containerId,
      sandboxId,
      state: "creating",
      runtime: makeup.runtime,
      templateId: makeup.templateId,
      buildId: makeup.buildId,
      size: makeup.size,
      layers: makeup.layers,
      agent: makeup.agent,
      ...(makeup.start ? { start: makeup.start } : {}),
      ...(makeup.volumes ? { volumes: makeup.volumes } : {}),
      area: image?.local.area ?? newAreaId(),
      frozenAreas: image?.local.frozenAreas ?? [],
      slot,
      cgroupPath: cgroupPathOf(deps.config.instance, containerId),
      options,
      identity,
      createdAtMs: Date.now(),
      ...(image ? { imageId: image.imageId } : {}),
    };
  }
}

/** Why a sandbox loses the memory that it should have. */
function memoryLostWith(image: ImageRecord, { volumes }: SandboxMakeup): string {
  if (!image.memory || isSameMounts(image.volumes, volumes)) return memoryLostBy(image);
  return "it does not have the volumes that it had when its memory was saved";
}

/** Whether the sandbox can still be booted from its disk. */
function isMemoryFault(error: unknown): boolean {
  return error instanceof PlatformError && (error.code === "image_unusable" || error.code === "agent_failed");
}

/**
 * Waits for the hooks of the guest. Must not be called while the caller holds anything that others wait for: the guest decides how long its
 * hooks run.
 */
export async function afterHooks({ record, hooksRun }: Started): Promise<void> {
  const { slot, identity } = record;
  if (hooksRun) await untilHooksEnded(slot.addresses.guest, identity.accessToken);
}
