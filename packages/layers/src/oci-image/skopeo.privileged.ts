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
  /** The credentials of the host's root may be used: the operator pulls, and no team. */
  readonly hostCredentials?: boolean;
  /** Environment of the program: proxies and certificates. Default: a plain system's. */
  readonly env?: Secret<Readonly<Record<string, string>>>;
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
    if (!registries.hostCredentials) await writeSettings(join(home, ".config/containers"), registries);
    // Never on a command line, where every user of this machine could read it.
    if (credentials) await writeFile(authFile, authJson(reference, credentials), { mode: 0o600 });
    const options = (prefix: string) => [
      ...authOptions(prefix, { file: credentials ? authFile : operatorAuthFile(registries), registries }),
      ...(isLoopbackRegistry(reference) ? [`--${prefix}tls-verify=false`] : []),
    ];
    const args = ["--tmpdir", home, ...command.args({ access: options })];
    const result = await runCommand("skopeo", args, {
      timeoutMs,
      maxOutputBytes: 8 * 1024 * 1024,
      env: { PATH: PLAIN_PATH, LANG: "C.UTF-8", ...registries.env?.reveal(), ...(registries.hostCredentials ? {} : { HOME: home }) },
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

/** Where skopeo looks first. What is not there is taken from the host's /etc/containers. */
async function writeSettings(dir: string, { configDir, mirror }: RegistrySettings): Promise<void> {
  await mkdir(dir, { recursive: true });
  const given = ["registries.conf", "certs.d"].filter((name) => configDir !== undefined && existsSync(join(configDir, name)));
  for (const name of given) await symlink(join(configDir ?? "", name), join(dir, name));
  if (mirror === undefined || given.includes("registries.conf")) return;
  const insecure = isLoopbackRegistry({ registry: mirror.split("/")[0] ?? "" });
  const lines = ["[[registry]]", 'location = "docker.io"', "[[registry.mirror]]", `location = ${JSON.stringify(mirror)}`];
  await writeFile(join(dir, "registries.conf"), `${[...lines, `insecure = ${insecure}`].join("\n")}\n`);
}

function operatorAuthFile({ configDir }: RegistrySettings): string | undefined {
  const file = configDir && join(configDir, "auth.json");
  return file && existsSync(file) ? file : undefined;
}

function authOptions(prefix: string, { file, registries }: { file: string | undefined; registries: RegistrySettings }): string[] {
  if (file !== undefined) return [`--${prefix}authfile`, file];
  return registries.hostCredentials ? [] : [`--${prefix}no-creds`];
}

function authJson({ registry }: OciImageReference, { username, password }: RegistryCredentials): string {
  const auth = Buffer.from(`${username}:${password.reveal()}`).toString("base64");
  return JSON.stringify({ auths: { [registry]: { auth } } });
}
