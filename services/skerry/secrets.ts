import { readFileSync } from "node:fs";
import { asError, PlatformError, Secret } from "@skerry/base";

/** The secrets file, which the first `./skerry up` writes. Roles on other hosts need `internalSecret` alone. */
export interface PlatformSecrets {
  readonly internalSecret: Secret;
  /** Needed by the api role. */
  readonly control?: {
    readonly apiKey: Secret;
    readonly accessToken: Secret;
    readonly adminToken: Secret;
    readonly tokenSeed: Secret;
    readonly teamId: string;
    readonly userId: string;
  };
}

export function readSecrets(file: string): PlatformSecrets {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  } catch (error) {
    throw new PlatformError(
      "config_invalid",
      `the secrets file ${file} can't be read: run ./skerry up, which creates it or says what to do, or set SKERRY_SECRETS_FILE`,
      {
        cause: asError(error),
      },
    );
  }
  const text = (name: string): string => {
    const value = fields[name];
    if (typeof value !== "string" || value === "") throw new PlatformError("config_invalid", `${file} has no ${name}`);
    return value;
  };
  const internalSecret = new Secret(text("internalSecret"));
  if (!("tokenSeed" in fields)) return { internalSecret };
  return {
    internalSecret,
    control: {
      apiKey: new Secret(text("apiKey")),
      accessToken: new Secret(text("accessToken")),
      adminToken: new Secret(text("adminToken")),
      tokenSeed: new Secret(text("tokenSeed")),
      teamId: text("teamId"),
      userId: text("userId"),
    },
  };
}
