import type { SiteNetwork } from "@skerry/wire";
import { isGeneration } from "../../generation/generation.ts";

/** What the platform tells the agent after a start or a restore. An absent field changes nothing; an absent token removes the token. */
export interface InitRequest {
  readonly envVars: Readonly<Record<string, string>> | undefined;
  readonly accessToken: string | undefined;
  /** Nanoseconds since the epoch. */
  readonly timestamp: bigint | undefined;
  /** Names one start or restore. Requests of the same one are ordered by their timestamps. */
  readonly lifecycleId: string | undefined;
  readonly defaultUser: string | undefined;
  readonly defaultWorkdir: string | undefined;
  /** An addition of this platform: the identity of the sandbox, for E2B_SANDBOX_ID and E2B_TEMPLATE_ID. */
  readonly sandboxId: string | undefined;
  readonly templateId: string | undefined;
  /** Memory size of the sandbox in MiB. */
  readonly memoryMB: number | undefined;
  /** Limit on the processes and threads of all guests together. */
  readonly maxProcesses: number | undefined;
  /** Changes when the sandbox becomes a copy of another one: see generation.ts. */
  readonly generation: string | undefined;
  /** PEM of a certificate authority to trust. */
  readonly caBundle: string | undefined;
  /** An addition of this platform: how the operator's site reaches the internet. */
  readonly site: SiteNetwork | undefined;
  /** Fields that are specified but that this agent does not implement yet. */
  readonly unsupported: readonly string[];
}

/** An empty body sets nothing. Undefined when the body is no JSON object or has a field of the wrong type or form. */
export function parseInit(text: string): InitRequest | undefined {
  try {
    return parseFields(text.trim() === "" ? {} : parseObject(text));
  } catch (error) {
    if (error instanceof InvalidBodyError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class InvalidBodyError extends Error {}

function parseFields(body: Record<string, unknown>): InitRequest {
  const accessToken = optionalString(body.accessToken);
  // Reject an empty token, which would look like protection, and a backslash, which not every client can send.
  if (accessToken === "" || accessToken?.includes("\\")) throw new InvalidBodyError();
  const generation = optionalString(body.generation);
  if (generation !== undefined && !isGeneration(generation)) throw new InvalidBodyError();
  return {
    envVars: stringMap(body.envVars),
    accessToken,
    timestamp: parseTimestamp(optionalString(body.timestamp)),
    lifecycleId: optionalString(body.lifecycleID),
    defaultUser: optionalString(body.defaultUser),
    defaultWorkdir: optionalString(body.defaultWorkdir),
    sandboxId: optionalString(body.sandboxId),
    templateId: optionalString(body.templateId),
    memoryMB: optionalPositive(body.memoryMB),
    maxProcesses: optionalPositive(body.maxProcesses),
    generation,
    caBundle: optionalString(body.caBundle),
    site: siteNetwork(body.site),
    unsupported: ["volumeMounts", "hyperloopIP"].filter((name) => isFilled(body[name])),
  };
}

function parseObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new InvalidBodyError();
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function optionalString(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new InvalidBodyError();
  return value;
}

function optionalPositive(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || value <= 0) throw new InvalidBodyError();
  return value;
}

function stringMap(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value) || !Object.values(value).every((item) => typeof item === "string")) throw new InvalidBodyError();
  return value as Record<string, string>;
}

function siteNetwork(value: unknown): SiteNetwork | undefined {
  const fields = stringMap(value);
  if (fields === undefined) return undefined;
  const { certificates = "", httpProxy = "", httpsProxy = "", noProxy = "" } = fields;
  return { certificates, httpProxy, httpsProxy, noProxy };
}

const RFC3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/;

/** Nanoseconds since the epoch. */
function parseTimestamp(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  const [, date = "", time = "", fraction = "", zone = ""] = RFC3339.exec(text) ?? [];
  const millis = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(millis)) throw new InvalidBodyError();
  return BigInt(millis) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

function isFilled(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  return !(Array.isArray(value) && value.length === 0);
}
