import { CLIENT_ID } from "@skerry/wire";
import type { Static } from "typebox";
import type { RunningSandbox } from "../sandboxes/service.ts";
import type { ListedSandboxSchema, SandboxDetailSchema, SandboxSchema } from "./schemas.ts";
import type { ApiServices } from "./services.ts";

type EncodeServices = Pick<ApiServices, "accessTokenOf" | "config">;

export function encodeSandbox(services: EncodeServices, sandbox: RunningSandbox): Static<typeof SandboxSchema> {
  return {
    templateID: sandbox.templateId,
    sandboxID: sandbox.id,
    clientID: CLIENT_ID,
    envdVersion: sandbox.agentVersion ?? services.config.agentVersion,
    ...(sandbox.alias === null ? {} : { alias: sandbox.alias }),
    envdAccessToken: services.accessTokenOf(sandbox.id),
    ...domainOf(services),
  };
}

export function encodeListedSandbox(services: EncodeServices, sandbox: RunningSandbox): Static<typeof ListedSandboxSchema> {
  return {
    templateID: sandbox.templateId,
    sandboxID: sandbox.id,
    clientID: CLIENT_ID,
    envdVersion: sandbox.agentVersion ?? services.config.agentVersion,
    ...(sandbox.alias === null ? {} : { alias: sandbox.alias }),
    startedAt: new Date(sandbox.startedAt).toISOString(),
    endAt: new Date(sandbox.endAt).toISOString(),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMb,
    diskSizeMB: sandbox.diskSizeMb,
    ...(sandbox.metadata && Object.keys(sandbox.metadata).length > 0 ? { metadata: sandbox.metadata } : {}),
    state: "running",
    volumeMounts: [],
  };
}

export function encodeSandboxDetail(services: EncodeServices, sandbox: RunningSandbox): Static<typeof SandboxDetailSchema> {
  return {
    ...encodeListedSandbox(services, sandbox),
    envdAccessToken: services.accessTokenOf(sandbox.id),
    ...(sandbox.allowInternetAccess === null ? {} : { allowInternetAccess: sandbox.allowInternetAccess }),
    ...domainOf(services),
    lifecycle: { autoResume: sandbox.autoResume, onTimeout: sandbox.autoPause ? "pause" : "kill" },
  };
}

function domainOf({ config }: EncodeServices): { domain?: string } {
  return config.advertiseDomain === undefined ? {} : { domain: config.advertiseDomain };
}
