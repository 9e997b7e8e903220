// What a build gets of this node: sandboxes for its steps. They are containers without a sandbox, started like any other. The API never hears
// of them, and the next start of the node releases those that are left.

import { randomBytes } from "node:crypto";
import { type Logger, PlatformError, type PlatformErrorCode } from "@skerry/base";
import type { BuildHost, BuildSandbox, BuildSize } from "@skerry/builder";
import type { LayerDigest } from "@skerry/layers";
import type { AgentIdentity } from "../agent/agent-client.ts";
import type { Containers } from "../containers/containers.ts";
import { type HostDeps, runtimeOf } from "../containers/host.privileged.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageUses } from "../images/image-uses.ts";
import { assertHostMemory } from "../limits/host-memory.ts";
import type { TemplateImages } from "../pool/template-images.ts";
import type { SandboxMakeup } from "../records/sandbox-record.ts";
import { startOf } from "../sandboxes/makeup.ts";
import type { StartGate } from "../sandboxes/start-gate.ts";
import type { Starter } from "../sandboxes/starter.ts";
import { NodeBuildSandbox } from "./build-sandbox.ts";
import { layersOfImage } from "./image-layers.privileged.ts";

export interface NodeBuildHostOptions {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly uses: ImageUses;
  readonly starter: Starter;
  readonly templateImages: TemplateImages;
  readonly gate: StartGate;
  readonly logger: Logger;
}

/** How long the ready command of a template may take. */
const READY_MS = 600_000;
/** What a process of a start command can have open that no image can keep. */
const NOT_KEPT: readonly PlatformErrorCode[] = ["state_not_savable", "image_not_written", "links_not_kept"];

type PrepareOptions = Parameters<BuildHost["prepareTemplate"]>[0];
type StartOptions = Parameters<BuildHost["startSandbox"]>[0];

/** The sandboxes of all builds are one group at the gate. The API lets teams take turns with builds. */
const BUILDS = "builds";

export class NodeBuildHost implements BuildHost {
  readonly #options: NodeBuildHostOptions;

  constructor(options: NodeBuildHostOptions) {
    this.#options = options;
  }

  async startSandbox(options: StartOptions): Promise<BuildSandbox> {
    const { deps, containers, starter, gate, logger } = this.#options;
    await deps.areas.assertRoom();
    assertHostMemory();
    options.signal.throwIfAborted();
    const containerId = containers.newId();
    const makeup = this.#makeupOf(options);
    const plan = { containerId, sandboxId: "", makeup, identity: identityOf(makeup), options: {}, withMemory: false, isBuild: true };
    await gate.run(BUILDS, () => starter.start(plan));
    const live = containers.get(containerId);
    if (!live) throw new Error(`container ${containerId} was released as soon as it had started`);
    const sandbox = new NodeBuildSandbox({ deps, containers, live, logger });
    if (options.signal.aborted) {
      await sandbox.discard();
      options.signal.throwIfAborted();
    }
    return sandbox;
  }

  async prepareTemplate({ start, force, signal, log, ...options }: PrepareOptions): Promise<void> {
    const { deps, templateImages } = this.#options;
    const makeup = { ...this.#makeupOf(options), start: startOf(start) };
    if (!force && templateImages.of(makeup)) return;
    await deps.areas.assertRoom();
    assertHostMemory();
    try {
      await templateImages.take(makeup, { readyMs: READY_MS, isForced: force, signal, log });
    } catch (error) {
      if (signal.aborted || !(error instanceof PlatformError) || !NOT_KEPT.includes(error.code)) throw error;
      const why = error.publicMessage ?? "the reason is in the log of the node";
      const message = `the started template cannot be kept in memory, so each sandbox will run the start command: ${why}`;
      log({ level: "warn", step: "finalize", message });
    }
  }

  layersOfImage(imageId: string, options: { readonly holder: string; readonly signal: AbortSignal }): Promise<readonly LayerDigest[]> {
    return layersOfImage(this.#options, imageId, options);
  }

  #makeupOf({ buildId, templateId, layers, size, runtime }: MakeupOptions): SandboxMakeup {
    const { config } = this.#options.deps;
    return { runtime: runtimeOf(config, runtime).name, templateId, buildId, size, layers: [...layers], agent: config.agents.current };
  }
}

interface MakeupOptions {
  readonly buildId: string;
  readonly templateId: string;
  readonly layers: readonly LayerDigest[];
  readonly size: BuildSize;
  readonly runtime: string;
}

/** The agent's own default user is root. Without a generation no program of the guest runs: the sandbox is no copy of another one. */
function identityOf({ templateId, size }: SandboxMakeup): AgentIdentity {
  return {
    sandboxId: "",
    templateId,
    envVars: {},
    accessToken: randomBytes(20).toString("hex"),
    defaultUser: "",
    defaultWorkdir: "",
    memoryMb: size.memoryMb,
  };
}
