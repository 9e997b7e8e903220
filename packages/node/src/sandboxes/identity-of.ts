import type { SandboxSpec } from "@skerry/wire/node";
import type { ImageRecord } from "../images/image.ts";
import type { AgentIdentity } from "./agent-client.ts";

/** What a sandbox's agent is told: what was asked for, above what the image has that it starts from. */
export function identityOf(spec: SandboxSpec, image: ImageRecord | undefined): AgentIdentity {
  const { sandboxId, templateId, envVars, accessToken, defaultUser, defaultWorkdir, memoryMb } = spec;
  const before = image?.identity;
  return {
    sandboxId,
    templateId,
    envVars: { ...before?.envVars, ...envVars },
    accessToken,
    defaultUser: defaultUser || (before?.defaultUser ?? ""),
    defaultWorkdir: defaultWorkdir || (before?.defaultWorkdir ?? ""),
    memoryMb: image?.size.memoryMb ?? memoryMb,
  };
}
