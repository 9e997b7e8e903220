import type { Snapshot } from "@skerry/store";
import { CLIENT_ID } from "@skerry/wire";
import type { Static } from "typebox";
import { type ShownSandbox, shownState } from "../../sandboxes/shown-sandbox.ts";
import { shownName } from "../../templates/reference.ts";
import { isPrivate } from "../../traffic/ingress.ts";
import { encodeOptions } from "../sandbox-options.ts";
import type { ListedSandboxSchema, SandboxDetailSchema, SandboxSchema, SnapshotSchema } from "../schemas.ts";

/** What answers say about every sandbox in addition to its entry. */
export interface Encoding {
  /** Shown as `envdVersion` for a sandbox whose node has not reported its own. */
  readonly agentVersion: string;
  /** Shown as `domain`; clients then use it instead of their own setting. */
  readonly advertiseDomain?: string;
  /** The token that the sandbox's agent requires. */
  readonly accessTokenOf: (sandboxId: string) => string;
  /** The token that traffic to a private sandbox must carry. */
  readonly trafficTokenOf: (sandboxId: string) => string;
}

export function encodeSandbox(encoding: Encoding, sandbox: ShownSandbox): Static<typeof SandboxSchema> {
  return {
    ...identityOf(encoding, sandbox),
    envdAccessToken: encoding.accessTokenOf(sandbox.id),
    ...(isPrivate(sandbox.options) ? { trafficAccessToken: encoding.trafficTokenOf(sandbox.id) } : {}),
    ...domainOf(encoding),
  };
}

export function encodeListedSandbox(encoding: Encoding, sandbox: ShownSandbox): Static<typeof ListedSandboxSchema> {
  return {
    ...identityOf(encoding, sandbox),
    startedAt: new Date(sandbox.startedAt).toISOString(),
    endAt: new Date(endOf(sandbox)).toISOString(),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMb,
    diskSizeMB: sandbox.diskSizeMb,
    ...(sandbox.metadata && Object.keys(sandbox.metadata).length > 0 ? { metadata: sandbox.metadata } : {}),
    state: shownState(sandbox),
    volumeMounts: sandbox.volumeMounts.map(({ name, path }) => ({ name, path })),
    ...(sandbox.agentUnresponsive ? { envdUnresponsiveAtPause: true } : {}),
  };
}

export function encodeSandboxDetail(encoding: Encoding, sandbox: ShownSandbox): Static<typeof SandboxDetailSchema> {
  return {
    ...encodeListedSandbox(encoding, sandbox),
    envdAccessToken: encoding.accessTokenOf(sandbox.id),
    ...encodeOptions(sandbox.options),
    ...domainOf(encoding),
    ...pauseFieldsOf(sandbox),
    lifecycle: { autoResume: sandbox.autoResume, onTimeout: sandbox.autoPause ? "pause" : "kill" },
  };
}

function identityOf({ agentVersion }: Encoding, sandbox: ShownSandbox) {
  return {
    templateID: sandbox.templateId,
    sandboxID: sandbox.id,
    clientID: CLIENT_ID,
    envdVersion: sandbox.agentVersion ?? agentVersion,
    ...(sandbox.alias === null ? {} : { alias: sandbox.alias }),
  };
}

/** The time at which the sandbox times out, or at which it was paused. */
function endOf(sandbox: ShownSandbox): number {
  if (shownState(sandbox) !== "paused") return sandbox.endAt;
  return sandbox.pausedAt ?? sandbox.stateChangedAt;
}

type PauseFields = Pick<Static<typeof SandboxDetailSchema>, "pauseMode" | "pauseReason" | "keptUntil">;

/** What the last pause kept. Empty until the pause is complete. */
function pauseFieldsOf(sandbox: ShownSandbox): PauseFields {
  if (shownState(sandbox) !== "paused" || sandbox.imageHasMemory === null) return {};
  return {
    pauseMode: sandbox.imageHasMemory ? "full" : "filesystem",
    ...(sandbox.pauseReason === null ? {} : { pauseReason: sandbox.pauseReason }),
    ...(sandbox.keepUntil === null ? {} : { keptUntil: new Date(sandbox.keepUntil).toISOString() }),
  };
}

function domainOf({ advertiseDomain }: Encoding): { domain?: string } {
  return advertiseDomain === undefined ? {} : { domain: advertiseDomain };
}

export function encodeSnapshot({ template, alias, tag }: Snapshot): Static<typeof SnapshotSchema> {
  const name = alias && shownName({ namespace: alias.namespace, name: alias.alias });
  return { snapshotID: `${name ?? template.id}:${tag}`, names: name === undefined ? [] : [name] };
}

/** Response header that says why existing memory could not be restored. */
export const MEMORY_LOST_HEADER = "Skerry-Memory-Lost";

export function memoryLostHeaders(reason: string | undefined): Readonly<Record<string, string>> {
  if (reason === undefined) return {};
  const text = reason
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, 200);
  return { [MEMORY_LOST_HEADER]: text || "unknown" };
}
