// What the options of a sandbox mean for requests to its ports. The edge carries it out.

import { createHash } from "node:crypto";
import type { SandboxOptions } from "@skerry/wire/node";

/** The fields of Ingress in spec/control/control.proto. */
export interface IngressFields {
  readonly trafficTokenSha256: Uint8Array<ArrayBuffer>;
  readonly hostTemplate: string;
  readonly tlsPorts: number[];
}

/** Returns whether requests must carry the sandbox's traffic token. */
export function isPrivate(options: SandboxOptions): boolean {
  return options.allowPublicTraffic === false;
}

/** Returns undefined for a sandbox whose requests need no token and are forwarded as they are. */
export function ingressOf(options: SandboxOptions, trafficToken: () => string): IngressFields | undefined {
  const { maskRequestHost = "", httpsPorts = [] } = options;
  if (!isPrivate(options) && maskRequestHost === "" && httpsPorts.length === 0) return undefined;
  const digest = isPrivate(options) ? createHash("sha256").update(trafficToken()).digest() : new Uint8Array();
  return { trafficTokenSha256: new Uint8Array(digest), hostTemplate: maskRequestHost, tlsPorts: [...httpsPorts] };
}
