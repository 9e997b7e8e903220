// The one place that runs skopeo, which knows registries: credentials, mirrors, proxies, certificates, platforms.
//
// The names of images come from the teams of a platform, so skopeo sees no credentials of the host's root: its home directory is an empty
// one, and its file of credentials holds what the caller gave, or what the operator put into the folder of registry settings.

import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, type Secret } from "@skerry/base";
import { formatOciImageReference, isLoopbackRegistry, type OciImageReference } from "./reference.ts";
import { registryFailure } from "./registry-failure.ts";

export interface RegistryCredentials {
  readonly username: string;
  readonly password: Secret<string>;
}

/** How this machine reaches registries. */
export interface RegistrySettings {
  /**
   * A folder like /etc/containers: `registries.conf` with mirrors and blocked registries, `certs.d/<host>/ca.crt`, and `auth.json` with
   * credentials that every pull without credentials of its own may use. Undefined: the host's /etc/containers, and no credentials.
   */
  readonly configDir?: string;
  /** A mirror of Docker Hub, such as `mirror.example:5000/hub`. Only without a `registries.conf` in `configDir`. */
  readonly mirror?: string;
  /** Environment of the program: proxies and certificates. Default: a plain system's. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface RegistryAccess {
  /** Undefined: the operator's for this registry, if any. */
  readonly credentials?: RegistryCredentials;
  readonly registries?: RegistrySettings;
  readonly signal?: AbortSignal;
}

export interface SkopeoCommand {
  readonly reference: OciImageReference;
  /** Where a credentials file may be put for the time of the call; only root may look in there. */
  readonly workDir: string;
  readonly timeoutMs: number;
  /** `access(prefix)` returns the options that say how to reach the registry. */
  args(options: { access: (prefix: string) => readonly string[] }): readonly string[];
}

/** Runs one skopeo command about an OCI image. */
export async function runSkopeo(access: RegistryAccess, command: SkopeoCommand): Promise<string> {
  const { reference, workDir, timeoutMs } = command;
  const { credentials, registries = {}, signal } = access;
  const home = await mkdtemp(join(workDir, "skopeo-"));
  try {
    const authFile = join(home, "auth.json");
    await writeSettings(home, registries);
    // Never on a command line, where every user of this machine could read it.
    if (credentials) await writeFile(authFile, authJson(reference, credentials), { mode: 0o600 });
    const options = (prefix: string) => [
      ...authOptions(prefix, credentials ? authFile : operatorAuthFile(registries)),
      ...(isLoopbackRegistry(reference) ? [`--${prefix}tls-verify=false`] : []),
    ];
    const args = ["--tmpdir", home, ...command.args({ access: options })];
    const result = await runCommand("skopeo", args, {
      timeoutMs,
      maxOutputBytes: 8 * 1024 * 1024,
      env: { PATH: PLAIN_PATH, LANG: "C.UTF-8", ...registries.env, ...homeVariables(home, registries) },
      ...(signal && { signal }),
    });
    return result.stdout;
  } catch (error) {
    signal?.throwIfAborted();
    throw registryFailure(formatOciImageReference(reference), error);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

const PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

function homeVariables(home: string, { configDir, mirror }: RegistrySettings): Record<string, string> {
  const own = configDir && existsSync(join(configDir, "registries.conf")) ? join(configDir, "registries.conf") : undefined;
  const conf = own ?? (mirror === undefined ? undefined : mirrorFile(home));
  return { HOME: home, ...(conf !== undefined && { CONTAINERS_REGISTRIES_CONF: conf }) };
}

const mirrorFile = (home: string) => join(home, "registries.conf");

async function writeSettings(home: string, { configDir, mirror }: RegistrySettings): Promise<void> {
  if (mirror !== undefined) {
    const insecure = isLoopbackRegistry({ registry: mirror.split("/")[0] ?? "" });
    const lines = ["[[registry]]", 'location = "docker.io"', "[[registry.mirror]]", `location = ${JSON.stringify(mirror)}`];
    await writeFile(mirrorFile(home), `${[...lines, `insecure = ${insecure}`].join("\n")}\n`);
  }
  if (configDir === undefined || !existsSync(join(configDir, "certs.d"))) return;
  await mkdir(join(home, ".config/containers"), { recursive: true });
  await symlink(join(configDir, "certs.d"), join(home, ".config/containers/certs.d"));
}

function operatorAuthFile({ configDir }: RegistrySettings): string | undefined {
  const file = configDir && join(configDir, "auth.json");
  return file && existsSync(file) ? file : undefined;
}

const authOptions = (prefix: string, file: string | undefined) =>
  file === undefined ? [`--${prefix}no-creds`] : [`--${prefix}authfile`, file];

function authJson({ registry }: OciImageReference, { username, password }: RegistryCredentials): string {
  const auth = Buffer.from(`${username}:${password.reveal()}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
