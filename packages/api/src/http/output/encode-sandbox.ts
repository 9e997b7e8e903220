import { LISTED_AS } from "@skerry/store";
import { CLIENT_ID } from "@skerry/wire";
import type { Static } from "typebox";
import type { ShownSandbox } from "../../sandboxes/service.ts";
import { encodeOptions } from "../sandbox-options.ts";
import type { ListedSandboxSchema, SandboxDetailSchema, SandboxSchema } from "../schemas.ts";
import type { ApiServices } from "../services.ts";

type EncodeServices = Pick<ApiServices, "accessTokenOf" | "config">;

export function encodeSandbox(services: EncodeServices, sandbox: ShownSandbox): Static<typeof SandboxSchema> {
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

export function encodeListedSandbox(services: EncodeServices, sandbox: ShownSandbox): Static<typeof ListedSandboxSchema> {
  return {
    templateID: sandbox.templateId,
    sandboxID: sandbox.id,
    clientID: CLIENT_ID,
    envdVersion: sandbox.agentVersion ?? services.config.agentVersion,
    ...(sandbox.alias === null ? {} : { alias: sandbox.alias }),
    startedAt: new Date(sandbox.startedAt).toISOString(),
    endAt: new Date(endOf(sandbox)).toISOString(),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMb,
    diskSizeMB: sandbox.diskSizeMb,
    ...(sandbox.metadata && Object.keys(sandbox.metadata).length > 0 ? { metadata: sandbox.metadata } : {}),
    state: LISTED_AS[sandbox.state] ?? "running",
    volumeMounts: [],
    ...(sandbox.agentUnresponsive ? { envdUnresponsiveAtPause: true } : {}),
  };
}

export function encodeSandboxDetail(services: EncodeServices, sandbox: ShownSandbox): Static<typeof SandboxDetailSchema> {
  return {
    ...encodeListedSandbox(services, sandbox),
    envdAccessToken: services.accessTokenOf(sandbox.id),
    ...encodeOptions(sandbox.options),
    ...domainOf(services),
    ...pauseFieldsOf(sandbox),
    lifecycle: { autoResume: sandbox.autoResume, onTimeout: sandbox.autoPause ? "pause" : "kill" },
  };
}

/** Of a paused one: when it was paused. */
function endOf(sandbox: ShownSandbox): number {
  if (LISTED_AS[sandbox.state] !== "paused") return sandbox.endAt;
  return sandbox.pausedAt ?? sandbox.stateChangedAt;
}

type PauseFields = Pick<Static<typeof SandboxDetailSchema>, "pauseMode" | "pauseReason" | "keptUntil">;

/** What the last pause kept; known when it is over. */
function pauseFieldsOf(sandbox: ShownSandbox): PauseFields {
  if (LISTED_AS[sandbox.state] !== "paused" || sandbox.imageHasMemory === null) return {};
  return {
    pauseMode: sandbox.imageHasMemory ? "full" : "filesystem",
    ...(sandbox.pauseReason === null ? {} : { pauseReason: sandbox.pauseReason }),
    ...(sandbox.keepUntil === null ? {} : { keptUntil: new Date(sandbox.keepUntil).toISOString() }),
  };
}

function domainOf({ config }: EncodeServices): { domain?: string } {
  return config.advertiseDomain === undefined ? {} : { domain: config.advertiseDomain };
}

/** Header by which an answer says that memory that was there could not be brought back, and why. */
export const MEMORY_LOST_HEADER = "Skerry-Memory-Lost";

export function memoryLostHeaders(reason: string | undefined): Readonly<Record<string, string>> {
  if (reason === undefined) return {};
  const text = reason
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, 200);
  return { [MEMORY_LOST_HEADER]: text || "unknown" };
}
