// Finds the credentials that `docker login`, `podman login` or `skopeo login` stored for the registry of an image.
// Format of the file: containers-auth.json(5); the protocol of helper programs is that of docker-credential-helpers.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, SubprocessError } from "@skerry/base";
import { parseOciImageReference } from "@skerry/layers";
import { OperatorError } from "@skerry/setup/folder";

export interface RegistryLogin {
  /** Name in the file: a registry, or a part of one. */
  readonly registry: string;
  readonly file: string;
  readonly username: string;
  readonly password: string;
}

interface AuthFile {
  readonly path: string;
  readonly auths: Readonly<Record<string, { readonly auth?: string }>>;
  readonly credHelpers: Readonly<Record<string, string>>;
  readonly credsStore: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** No image: the template starts empty. */
const SCRATCH = "scratch";
const DOCKER_HUB = "docker.io";
/** What `docker login` without a host writes. */
const DOCKER_HUB_KEY = "https://index.docker.io/v1/";
const HELPER_TIMEOUT_MS = 30_000;

/**
 * Looks in `file`, or else in the files where the login commands write. Returns undefined if those have no credentials for the registry of
 * the image. Throws OperatorError if a file cannot be read, a helper program fails, or `file` has no credentials for the registry.
 */
export async function findRegistryLogin(
  image: string,
  { file, env }: { readonly file: string | undefined; readonly env: Environment },
): Promise<RegistryLogin | undefined> {
  if (image === SCRATCH) return undefined;
  const { registry, repository } = parseOciImageReference(image);
  for (const path of file === undefined ? usualFiles(env) : [file]) {
    const read = await readAuthFile(path, { isRequired: file !== undefined });
    const login = read && (await loginIn(read, { registry, repository, env }));
    if (login) return login;
  }
  if (file === undefined) return undefined;
  throw new OperatorError(`${file} has no credentials for ${registry}`, {
    hints: [`Add them: skopeo login --authfile ${file} ${registry}`],
    exit: "usage",
  });
}

function usualFiles({ REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG, HOME }: Environment): readonly string[] {
  if (REGISTRY_AUTH_FILE) return [REGISTRY_AUTH_FILE];
  const files = [
    XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, "containers/auth.json") : "",
    HOME ? join(HOME, ".config/containers/auth.json") : "",
    DOCKER_CONFIG || HOME ? join(DOCKER_CONFIG || join(HOME ?? "", ".docker"), "config.json") : "",
  ];
  return files.filter((path) => path !== "");
}

async function readAuthFile(path: string, { isRequired }: { readonly isRequired: boolean }): Promise<AuthFile | undefined> {
  const unreadable = (why: string, cause?: unknown) =>
    new OperatorError(`${path}: ${why}`, {
      hints: ["Log in again with `skopeo login REGISTRY`, or name another file with --registry-auth."],
      exit: "usage",
      cause,
    });
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (!isRequired && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
    throw unreadable(error.code === "ENOENT" ? "there is no such file" : error.message, error);
  });
  if (text === undefined) return undefined;
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    // The error would quote the file.
    throw unreadable("not JSON");
  }
  if (!isRecord(content)) throw unreadable("not a file of registry credentials");
  const { auths = {}, credHelpers = {}, credsStore } = content;
  const isValid =
    isRecord(auths) &&
    Object.values(auths).every((entry) => isRecord(entry) && (entry.auth === undefined || typeof entry.auth === "string")) &&
    isRecord(credHelpers) &&
    Object.values(credHelpers).every((helper) => typeof helper === "string") &&
    (credsStore === undefined || typeof credsStore === "string");
  if (!isValid) throw unreadable("not a file of registry credentials");
  return { path, auths, credHelpers, credsStore } as AuthFile;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function loginIn(
  { path, auths, credHelpers, credsStore }: AuthFile,
  { registry, repository, env }: { readonly registry: string; readonly repository: string; readonly env: Environment },
): Promise<RegistryLogin | undefined> {
  const host = registry === DOCKER_HUB ? DOCKER_HUB_KEY : registry;
  const helper = credHelpers[registry] ?? credHelpers[host] ?? credsStore;
  const login = helper ? await askHelper(helper, host, env) : undefined;
  if (login) return { registry, file: path, ...login };
  for (const key of keysFor(registry, repository)) {
    const auth = auths[key]?.auth;
    if (!auth) continue;
    const text = Buffer.from(auth, "base64").toString();
    const colon = text.indexOf(":");
    if (colon > 0)
      return { registry: key, file: path, username: text.slice(0, colon), password: text.slice(colon + 1).replace(/\0+$/, "") };
  }
  return undefined;
}

/** The most specific first: `host/team/app`, `host/team`, `host`. Older programs write `https://host`. */
function keysFor(registry: string, repository: string): readonly string[] {
  const parts = repository.split("/");
  const scopes = parts.map((_, index) => [registry, ...parts.slice(0, parts.length - index)].join("/"));
  return [...scopes, registry, `https://${registry}`, `https://${registry}/v1/`, ...(registry === DOCKER_HUB ? [DOCKER_HUB_KEY] : [])];
}

async function askHelper(
  helper: string,
  key: string,
  env: Environment,
): Promise<{ readonly username: string; readonly password: string } | undefined> {
  const program = `docker-credential-${helper}`;
  const failed = (why: string) =>
    new OperatorError(`${program} gave no credentials for ${key}: ${why}`, {
      hints: [
        `Try it: echo ${key} | ${program} get`,
        "Or write a file with `skopeo login --authfile FILE REGISTRY`, and name it with --registry-auth.",
      ],
    });
  if (!/^[\w.-]+$/.test(helper)) throw failed("its name has characters that no helper has");
  const set = Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined));
  let answer: unknown;
  try {
    const { stdout } = await runCommand(program, ["get"], { input: key, env: set, timeoutMs: HELPER_TIMEOUT_MS });
    answer = JSON.parse(stdout);
  } catch (error) {
    // How helpers say that they do not know the registry.
    if (error instanceof SubprocessError && error.exitCode === 1) return undefined;
    throw failed(error instanceof SubprocessError ? error.message : "what it printed is not JSON");
  }
  if (!isRecord(answer) || typeof answer.Username !== "string" || typeof answer.Secret !== "string")
    throw failed("what it printed is not valid");
  if (answer.Username === "<token>") throw failed("it has an identity token, which the platform cannot use");
  return { username: answer.Username, password: answer.Secret };
}
