import type { SandboxSpec, StartCommand } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import { runtimeOf } from "../containers/host.privileged.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, StartOfTemplate } from "../records/sandbox-record.ts";
import { parseVolumeMounts } from "../volumes/volume-mount.ts";

/** What a sandbox of this spec is made of, which starts from its template, or from an image. */
export function makeupOf(config: NodeConfig, spec: SandboxSpec, image: ImageRecord | undefined): SandboxMakeup {
  const { current } = config.agents;
  const { templateId, buildId } = spec;
  const mounts = parseVolumeMounts(spec.volumeMounts);
  const volumes = mounts.length > 0 ? { volumes: mounts } : {};
  if (image) {
    const { runtime, size, layers } = image;
    const restores = image.memory !== undefined && !spec.withoutMemory;
    // A caller who wants no memory wants no start command either, as in E2B. It replaces memory that the runtime could not keep, or that was lost.
    const start = image.start && !spec.withoutMemory ? { start: image.start } : {};
    // Processes in an image have files of its agent open. A boot gets the current agent.
    return { runtime, templateId, buildId, size, layers, agent: restores ? image.agent : current, ...start, ...volumes };
  }
  return {
    runtime: runtimeOf(config, spec.runtime).name,
    templateId,
    buildId,
    size: { cpuCount: spec.cpuCount, memoryMb: spec.memoryMb, diskSizeMb: spec.diskSizeMb },
    layers: spec.layers,
    agent: current,
    ...(spec.start ? { start: startOf(spec.start) } : {}),
    ...volumes,
  };
}

export function startOf({ command, ready, user, workdir, env }: StartCommand): StartOfTemplate {
  return { command, ready, user, workdir, env: { ...env } };
}
