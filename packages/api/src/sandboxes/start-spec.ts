import type { Build, NewSandbox } from "@skerry/store";
import { accessTokenOf } from "../keys/credential.ts";
import { presentMounts } from "../volumes/mounts.ts";
import type { SandboxDeps } from "./deps.ts";
import { optionsForNode } from "./node-options.ts";

/** The spec of a sandbox that a node is to start. */
export async function startSpecOf(
  deps: Pick<SandboxDeps, "limits" | "tokenSeed" | "secrets" | "store">,
  sandbox: NewSandbox,
  start: {
    readonly build: Build | undefined;
    readonly envVars: Readonly<Record<string, string>>;
    /** The image that the sandbox starts from. */
    readonly imageId?: string | undefined;
    readonly withoutMemory?: boolean;
  },
) {
  const { build, imageId } = start;
  const [secrets, mounts, options] = await Promise.all([
    deps.secrets.of(sandbox),
    presentMounts(deps.store.volumes, sandbox.teamId, sandbox.volumeMounts),
    optionsForNode(deps, sandbox),
  ]);
  return {
    sandboxId: sandbox.id,
    templateId: sandbox.templateId,
    buildId: sandbox.buildId,
    layers: [...(build?.layers ?? [])],
    cpuCount: sandbox.cpuCount,
    memoryMb: sandbox.memoryMb,
    diskSizeMb: sandbox.diskSizeMb,
    envVars: { ...start.envVars },
    accessToken: accessTokenOf(deps.tokenSeed, sandbox.id),
    options,
    ...(secrets ? { secrets } : {}),
    defaultUser: build?.defaultUser ?? "user",
    defaultWorkdir: build?.defaultWorkdir ?? "/home/user",
    runtime: "",
    imageId: imageId ?? "",
    withoutMemory: start.withoutMemory ?? false,
    turnGroup: sandbox.teamId,
    volumeMounts: mounts.map(({ volumeId, path }) => ({ volumeId, path })),
    ...(build?.start === undefined ? {} : { start: { ...build.start, env: { ...build.start.env } } }),
  };
}
