// The one place that runs skopeo, which knows registries: credentials, mirrors, proxies, certificates, platforms.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, type Secret } from "@skerry/base";
import { formatOciImageReference, isLoopbackRegistry, type OciImageReference } from "./reference.ts";
import { registryFailure } from "./registry-failure.ts";

export interface RegistryCredentials {
  readonly username: string;
  readonly password: Secret<string>;
}

export interface RegistryAccess {
  /** Undefined: those that this machine's root has for the registry, if any. */
  readonly credentials?: RegistryCredentials;
  /** Environment of the program: proxies, and where credentials and certificates are. Default: a plain system's. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs one skopeo command about an OCI image. `access(prefix)` returns the options that say how to reach its registry. */
export async function runSkopeo(
  access: RegistryAccess,
  command: {
    readonly reference: OciImageReference;
    /** Where a credentials file may be put for the time of the call; only root may look in there. */
    readonly workDir: string;
    readonly timeoutMs: number;
    args(options: { access: (prefix: string) => readonly string[] }): readonly string[];
  },
): Promise<string> {
  const { reference, workDir, timeoutMs } = command;
  const { credentials, env, signal } = access;
  const secretDir = await mkdtemp(join(workDir, "skopeo-"));
  try {
    const authFile = join(secretDir, "auth.json");
    // Never on a command line, where every user of this machine could read it.
    if (credentials) await writeFile(authFile, authJson(reference, credentials), { mode: 0o600 });
    const options = (prefix: string) => [
      ...(credentials ? [`--${prefix}authfile`, authFile] : []),
      ...(isLoopbackRegistry(reference) ? [`--${prefix}tls-verify=false`] : []),
    ];
    const args = ["--tmpdir", secretDir, ...command.args({ access: options })];
    const result = await runCommand("skopeo", args, {
      timeoutMs,
      maxOutputBytes: 8 * 1024 * 1024,
      ...(env && { env }),
      ...(signal && { signal }),
    });
    return result.stdout;
  } catch (error) {
    signal?.throwIfAborted();
    throw registryFailure(formatOciImageReference(reference), error);
  } finally {
    await rm(secretDir, { recursive: true, force: true });
  }
}

function authJson({ registry }: OciImageReference, { username, password }: RegistryCredentials): string {
  const auth = Buffer.from(`${username}:${password.reveal()}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
