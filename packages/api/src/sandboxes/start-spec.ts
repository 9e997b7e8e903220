import type { Build, NewSandbox } from "@skerry/store";
import { accessTokenOf } from "./access-token.ts";
import type { SandboxDeps } from "./deps.ts";

/** The image that a sandbox starts from. */
export interface StartImage {
  readonly id: string;
  /** Whose token the agent in its memory asks for. */
  readonly sourceSandboxId: string;
}

/** What a node is told about a sandbox that it is to start. */
export function startSpecOf(
  deps: Pick<SandboxDeps, "tokenSeed">,
  sandbox: NewSandbox,
  start: {
    readonly build: Build | undefined;
    readonly envVars: Readonly<Record<string, string>>;
    readonly image?: StartImage | undefined;
    readonly withoutMemory?: boolean;
  },
) {
  const { build, image } = start;
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
    allowInternetAccess: sandbox.allowInternetAccess ?? true,
    defaultUser: build?.defaultUser ?? "user",
    defaultWorkdir: build?.defaultWorkdir ?? "/home/user",
    runtime: "",
    imageId: image?.id ?? "",
    imageAccessToken: image ? accessTokenOf(deps.tokenSeed, image.sourceSandboxId) : "",
    withoutMemory: start.withoutMemory ?? false,
  };
}
