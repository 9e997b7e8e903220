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
import { siteFor } from "../network/site-network.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import { memoryLostBy } from "./keeper.privileged.ts";
import type { Owner } from "./owner.ts";

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
  async start(plan: StartPlan): Promise<Started> {
    if (!plan.image?.memory || !plan.withMemory) {
      const memoryLostReason = plan.image && plan.withMemory ? memoryLostBy(plan.image) : "";
      return { ...(await this.#attempt(plan, { memoryLost: memoryLostReason })), kind: "boot", memoryLostReason };
    }
    try {
      return { ...(await this.#attempt(plan, "with memory")), kind: "restore", memoryLostReason: "" };
    } catch (error) {
      if (!isMemoryFault(error)) throw error;
      const memoryLostReason = asError(error).message;
      const facts = { sandbox_id: plan.sandboxId, image_id: plan.image.imageId, err: asError(error) };
      this.#options.logger.error(facts, "the memory could not be restored; the sandbox boots from its disk");
      return { ...(await this.#attempt(plan, { memoryLost: memoryLostReason })), kind: "boot", memoryLostReason };
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
        site: siteFor(this.#options.deps.config, { image: { kind: "pause" }, isRestored: true }),
      });
    } catch (error) {
      if (!isSameProcess(record.process)) throw error;
      this.#options.logger.warn({ sandbox_id: record.sandboxId, err: asError(error) }, "the agent of a resumed sandbox does not answer");
    }
    this.#options.containers.set({ ...record, state: "running" });
  }

  async #attempt(plan: StartPlan, how: "with memory" | { readonly memoryLost: string }): Promise<Ready> {
    const { containers } = this.#options;
    const withMemory = how === "with memory";
    const slot = await this.#slotFor(plan);
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
    const work = containers.extraMemory.lend(extraMemoryBytes, () => this.#run(plan, record, withMemory));
    const imageId = plan.image?.imageId;
    if (imageId !== undefined) this.#options.uses.during(imageId, work);
    try {
      return await work;
    } catch (error) {
      await containers.tryToGiveBack(record);
      throw error;
    }
  }

  async #run({ image, sandboxId, isBuild = false }: StartPlan, record: SandboxRecord, withMemory: boolean): Promise<Ready> {
    const { containers, images } = this.#options;
    const memory = image && withMemory ? await images.memoryOf(image) : undefined;
    const area = image?.local.area === record.area ? "written" : "new";
    const started = await containers.start({ record, area, ...(memory ? { memory } : {}) });
    const wait = agentWaitOf(started, { isRestored: memory !== undefined });
    const site = siteFor(this.#options.deps.config, { image, isRestored: memory !== undefined });
    let hooksRun = false;
    if (sandboxId === "" && !isBuild) {
      // The start command of a template is limited like any other.
      await awaitAgent(wait, { site, ...(record.start && !memory ? { memoryMb: record.size.memoryMb } : {}) });
      await warmUp(wait.address);
    } else {
      const currentToken = memory ? (image?.identity.accessToken ?? "") : "";
      ({ hooksRun } = await initialiseAgent({ ...wait, identity: record.identity, currentToken, site }));
    }
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
