import { isGeneration } from "../../generation/generation.ts";

/** What the platform tells the agent after a start or a restore. Absent fields leave things as they are, except the token. */
export interface InitRequest {
  readonly envVars: Readonly<Record<string, string>> | undefined;
  readonly accessToken: string | undefined;
  /** Nanoseconds since the epoch. */
  readonly timestamp: bigint | undefined;
  /** Names a start or a restore. Requests of the same one are ordered by their timestamps. */
  readonly lifecycleId: string | undefined;
  readonly defaultUser: string | undefined;
  readonly defaultWorkdir: string | undefined;
  /** Our own additions: identity of the sandbox, for E2B_SANDBOX_ID and E2B_TEMPLATE_ID. */
  readonly sandboxId: string | undefined;
  readonly templateId: string | undefined;
  /** Memory that the sandbox was made with, in MiB. */
  readonly memoryMB: number | undefined;
  /** How many processes and threads guests may have together. */
  readonly maxProcesses: number | undefined;
  /** Which copy of its past this sandbox is: see generation.ts. */
  readonly generation: string | undefined;
  /** PEM of a certificate authority to trust. */
  readonly caBundle: string | undefined;
  /** Names of fields that are specified and that this agent cannot act on yet. */
  readonly unsupported: readonly string[];
}

/** Parses the body; undefined when it is not what it should be. An empty body sets nothing. */
export function parseInit(text: string): InitRequest | undefined {
  const body = text.trim() === "" ? {} : parseObject(text);
  if (!body) return undefined;
  const envVars = stringMap(body.envVars);
  const accessToken = optionalString(body.accessToken);
  const timestamp = parseTimestamp(optionalString(body.timestamp));
  const lifecycleId = optionalString(body.lifecycleID);
  const defaultUser = optionalString(body.defaultUser);
  const defaultWorkdir = optionalString(body.defaultWorkdir);
  const sandboxId = optionalString(body.sandboxId);
  const templateId = optionalString(body.templateId);
  const caBundle = optionalString(body.caBundle);
  const generation = optionalString(body.generation);
  const memoryMB = optionalPositive(body.memoryMB);
  const maxProcesses = optionalPositive(body.maxProcesses);
  const fields = {
    envVars,
    accessToken,
    timestamp,
    lifecycleId,
    defaultUser,
    defaultWorkdir,
    sandboxId,
    templateId,
    memoryMB,
    maxProcesses,
    generation,
    caBundle,
  };
  if (Object.values(fields).includes(INVALID)) return undefined;
  // An empty token would look like a token that protects; a backslash cannot be carried by every client.
  if (accessToken === "" || (typeof accessToken === "string" && accessToken.includes("\\"))) return undefined;
  if (typeof generation === "string" && !isGeneration(generation)) return undefined;
  const unsupported = ["volumeMounts", "hyperloopIP"].filter((name) => isFilled(body[name]));
  return { ...(fields as Omit<InitRequest, "unsupported">), unsupported };
}

const INVALID = Symbol("invalid");

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function optionalString(value: unknown): string | undefined | typeof INVALID {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? value : INVALID;
}

function optionalPositive(value: unknown): number | undefined | typeof INVALID {
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" && value > 0 ? value : INVALID;
}

function stringMap(value: unknown): Readonly<Record<string, string>> | undefined | typeof INVALID {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) return INVALID;
  return Object.values(value).every((item) => typeof item === "string") ? (value as Record<string, string>) : INVALID;
}

const RFC3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/;

function parseTimestamp(text: string | undefined | typeof INVALID): bigint | undefined | typeof INVALID {
  if (text === undefined || text === INVALID) return text;
  const match = RFC3339.exec(text);
  if (!match) return INVALID;
  const [, date = "", time = "", fraction = "", zone = ""] = match;
  const millis = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(millis) ? INVALID : BigInt(millis) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

function isFilled(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  return !(Array.isArray(value) && value.length === 0);
}
