// The login of Amazon ECR: a call of its API, signed with the keys of the caller, returns the user and the password for the registry. curl
// makes the call, with the proxies and certificates that pulls have. The request is its standard input: other users see its arguments.

import { runCommand, Secret, SubprocessError } from "@skerry/base";
import type { RegistryCredentials } from "@skerry/layers";
import type { AwsCredentials } from "@skerry/wire/node";
import { AwsClient } from "aws4fetch";
import { BuildFailure } from "../build-failure.ts";
import type { ImageSettings } from "./source.ts";

const OPERATION = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken";
const TIMEOUT_MS = 30_000;
const PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface EcrLogin {
  /** The image's name as the caller wrote it, for the reason of a failure. */
  readonly name: string;
  readonly credentials: AwsCredentials;
  readonly settings: ImageSettings;
  readonly signal: AbortSignal;
}

/** Throws BuildFailure. */
export async function ecrLogin({ name, credentials, settings, signal }: EcrLogin): Promise<RegistryCredentials> {
  const { accessKeyId, secretAccessKey, region } = credentials;
  if (!/^[a-z0-9-]{1,40}$/.test(region)) throw denied(name, `'${region.slice(0, 40)}' is not a region of AWS`);
  const client = new AwsClient({ accessKeyId, secretAccessKey, service: "ecr", region });
  const request = await client.sign(`${(settings.ecrEndpoint ?? endpointOf(region)).replace(/\/$/, "")}/`, {
    method: "POST",
    headers: { "content-type": "application/x-amz-json-1.1", "x-amz-target": OPERATION },
    body: "{}",
  });
  const { status, body } = await post(request, { name, settings, signal });
  if (status === 200) return parseToken(name, body);
  // Its message may repeat what was signed, which is no secret, but nothing that the caller needs.
  const kind = /"__type"\s*:\s*"(?:[^"]*#)?([A-Za-z]{1,60})"/.exec(body)?.[1];
  if (status >= 500) throw unreachable(name, `Amazon ECR answered with status code ${status}`);
  throw denied(name, `Amazon ECR refuses the login${kind === undefined ? "" : ` (${kind})`}`);
}

function endpointOf(region: string): string {
  return `https://api.ecr.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

async function post(
  request: Request,
  { name, settings, signal }: Omit<EcrLogin, "credentials">,
): Promise<{ readonly status: number; readonly body: string }> {
  const lines = [`url = ${quoted(request.url)}`, 'request = "POST"', `data = ${quoted("{}")}`, 'write-out = "\\n%{http_code}"'];
  for (const [header, value] of request.headers) lines.push(`header = ${quoted(`${header}: ${value}`)}`);
  try {
    const { stdout } = await runCommand("curl", ["--silent", "--show-error", "--max-time", String(TIMEOUT_MS / 1_000), "--config", "-"], {
      input: `${lines.join("\n")}\n`,
      env: { PATH: PLAIN_PATH, LANG: "C.UTF-8", ...settings.registries?.env?.reveal() },
      timeoutMs: TIMEOUT_MS * 2,
      signal,
    });
    const end = stdout.lastIndexOf("\n");
    return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) };
  } catch (cause) {
    signal.throwIfAborted();
    const why = cause instanceof SubprocessError ? cause.stderr.trim().split("\n").at(-1)?.slice(0, 300) : undefined;
    throw unreachable(name, `Amazon ECR can't be reached${why ? ` (${why})` : ""}`, cause);
  }
}

/** As in a file of curl's configuration. */
const quoted = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

function parseToken(name: string, body: string): RegistryCredentials {
  try {
    const { authorizationData } = JSON.parse(body) as { authorizationData: readonly [{ authorizationToken: string }] };
    const token = Buffer.from(authorizationData[0].authorizationToken, "base64").toString();
    const colon = token.indexOf(":");
    if (colon < 1) throw new SyntaxError("no user and password");
    return { username: token.slice(0, colon), password: new Secret(token.slice(colon + 1)) };
  } catch {
    // The cause might have the token in it.
    throw unreachable(name, "the answer of Amazon ECR has no login");
  }
}

function denied(name: string, why: string): BuildFailure {
  return new BuildFailure(`access denied to '${name}': authentication required or insufficient permissions: ${why}`, { step: "base" });
}

function unreachable(name: string, why: string, cause?: unknown): BuildFailure {
  return new BuildFailure(`failed to pull image '${name}': unable to retrieve image from registry: ${why}`, { step: "base", cause });
}
