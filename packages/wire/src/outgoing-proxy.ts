// The SOCKS5 proxy through which a sandbox reaches the outside. Its password is encrypted in the options that the database has. Nodes get the
// options without it, and the password itself among the secrets, for their memory alone.

import type { SandboxOptions } from "./sandbox-options.ts";

export interface ProxyTls {
  /** "": the host of the proxy's address. */
  readonly serverName: string;
  /** PEM; "" for the authorities that are trusted anyway. */
  readonly caCert: string;
}

export interface OutgoingProxy {
  /** Another one for each choice of a proxy. */
  readonly credentialId: string;
  /** "host:port". */
  readonly address: string;
  /** "": none. */
  readonly username: string;
  readonly tls: ProxyTls | undefined;
}

/** A password as the database has it; "" for none. */
export interface SealedPassword {
  readonly sealed: string;
  readonly keyId: string;
}

export function outgoingProxyOf({ outgoingProxy }: SandboxOptions): OutgoingProxy | undefined {
  if (!outgoingProxy) return undefined;
  const { credentialId = "", address = "", username = "", tls } = outgoingProxy;
  return { credentialId, address, username, tls: tls && { serverName: tls.serverName ?? "", caCert: tls.caCert ?? "" } };
}

export function sealedPasswordOf({ outgoingProxy }: SandboxOptions): SealedPassword {
  return { sealed: outgoingProxy?.sealedPassword ?? "", keyId: outgoingProxy?.keyId ?? "" };
}

/** Options with this proxy; without one for undefined. */
export function withOutgoingProxy(options: SandboxOptions, proxy: (OutgoingProxy & SealedPassword) | undefined): SandboxOptions {
  const { outgoingProxy: _former, ...rest } = options;
  if (!proxy) return rest;
  const { sealed, keyId, tls, ...chosen } = proxy;
  const password = sealed === "" ? {} : { sealedPassword: sealed, keyId };
  return { ...rest, outgoingProxy: { ...chosen, ...password, ...(tls && { tls }) } };
}

/** The options for a node, which must not have the password in any form. */
export function withoutSealedPassword(options: SandboxOptions): SandboxOptions {
  const proxy = outgoingProxyOf(options);
  return proxy ? withOutgoingProxy(options, { ...proxy, sealed: "", keyId: "" }) : options;
}

/** The parts of "host:port". Undefined when it has another form. The host is not checked. */
export function proxyHostOf(address: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^([^\s:@/[\]]+):([1-9]\d{0,4})$/.exec(address);
  const [, host = "", digits = ""] = match ?? [];
  const port = Number(digits);
  return match && port <= 65_535 ? { host, port } : undefined;
}
