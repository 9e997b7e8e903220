// The images that sandboxes of a template are restored from: a sandbox that nobody has, with the template's start command running. They are
// derived from the template and can be taken again, so the control plane never hears of them.

import { setTimeout as sleep } from "node:timers/promises";
import { KeyedLock, type Logger } from "@skerry/base";
import type { BuildLog } from "@skerry/builder";
import type { Containers } from "../containers/containers.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageWriter } from "../images/image-writer.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import { bringUp } from "../sandboxes/start-command.ts";
import type { Starter } from "../sandboxes/starter.ts";
import { nobody, poolKeyOf, templateImageId } from "./pool-key.ts";

export interface TemplateImagesOptions {
  /**
   * How long a sandbox is left idle before the image of its template is taken. An idle agent returns the memory of its start to the system after
   * three seconds. In the image this memory would cost every sandbox space, and 50 ms of CPU time.
   */
  readonly settleMs: number;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly starter: Starter;
  readonly writer: ImageWriter;
  readonly fingerprintOf: (runtime: SandboxMakeup["runtime"]) => string;
  readonly keepsMemory: (runtime: SandboxMakeup["runtime"]) => boolean;
  readonly logger: Logger;
}

export interface TakeOptions {
  /** How long the template's ready command may take. */
  readonly readyMs: number;
  /** Runs the start command, and replaces the image, even if there is one. */
  readonly isForced?: boolean;
  readonly signal: AbortSignal;
  readonly log?: BuildLog;
}

export class TemplateImages {
  readonly #options: TemplateImagesOptions;
  readonly #lock = new KeyedLock();

  constructor(options: TemplateImagesOptions) {
    this.#options = options;
  }

  keyOf(makeup: SandboxMakeup): string {
    return poolKeyOf(makeup, this.#options.fingerprintOf(makeup.runtime));
  }

  of(makeup: SandboxMakeup): ImageRecord | undefined {
    return this.#options.images.get(templateImageId(this.keyOf(makeup)));
  }

  keepsMemory({ runtime }: SandboxMakeup): boolean {
    return this.#options.keepsMemory(runtime);
  }

  /**
   * Takes the image of a template, if there is none. On a runtime that keeps no memory, this only tries the template's start command.
   * Throws what `bringUp` throws, and the reason of `signal`.
   */
  take(makeup: SandboxMakeup, options: TakeOptions): Promise<void> {
    return this.#lock.run(this.keyOf(makeup), async () => {
      options.signal.throwIfAborted();
      if (!this.of(makeup) || options.isForced) await this.#take(makeup, options);
    });
  }

  async #take(makeup: SandboxMakeup, { readyMs, signal, log }: TakeOptions): Promise<void> {
    const { containers, starter } = this.#options;
    const containerId = containers.newId();
    const { record } = await starter.start({ containerId, sandboxId: "", makeup, ...nobody(makeup), withMemory: false });
    try {
      const lost = containers.get(containerId)?.ended.signal ?? AbortSignal.abort();
      const target = { address: record.slot.addresses.guest, token: "", lost };
      if (makeup.start) await bringUp(target, { start: makeup.start, readyMs, signal, ...(log ? { log } : {}) });
      if (makeup.start) crashPoint("build.template-started");
      if (this.keepsMemory(makeup)) await this.#write(makeup, record, signal);
    } finally {
      await containers.tryToGiveBack(record);
    }
  }

  async #write(makeup: SandboxMakeup, record: SandboxRecord, signal: AbortSignal): Promise<void> {
    const { settleMs, containers, writer, logger } = this.#options;
    await sleep(settleMs, undefined, { signal });
    const imageId = templateImageId(this.keyOf(makeup));
    // Creates that were about to use it boot instead.
    if (this.of(makeup)) await containers.discardImage(imageId);
    await writer.write({ record, imageId, kind: "template", withMemory: true, agentUnresponsive: false });
    logger.info({ template_id: makeup.templateId, build_id: makeup.buildId }, "image of a template taken");
  }
}
