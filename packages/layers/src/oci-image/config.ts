import { PlatformError } from "@skerry/base";

/** The configuration of an OCI image: how to run it. */
export interface OciImageConfig {
  readonly architecture: string;
  /** `NAME=value` pairs. */
  readonly env: readonly string[];
  /** Empty: root. */
  readonly user: string;
  /** Empty: the root directory. */
  readonly workingDir: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Parses the configuration of an OCI image. Its author is not trusted: a value of the wrong type counts as absent. */
export function parseOciImageConfig(text: string): OciImageConfig {
  const file = asRecord(parseJson(text));
  const config = asRecord(file.config);
  return {
    architecture: asText(file.architecture),
    env: asTexts(config.Env),
    user: asText(config.User),
    workingDir: asText(config.WorkingDir),
    entrypoint: asTexts(config.Entrypoint),
    cmd: asTexts(config.Cmd),
    labels: Object.fromEntries(
      Object.entries(asRecord(config.Labels)).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    ),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PlatformError("oci_image_unusable", "the configuration of the OCI image is not JSON", { cause });
  }
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};

const asText = (value: unknown): string => (typeof value === "string" ? value : "");

const asTexts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === "string") : [];
