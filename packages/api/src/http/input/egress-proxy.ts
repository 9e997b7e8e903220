// The proxy for the outgoing traffic of a sandbox, as callers give it.

import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { Secret } from "@skerry/base";
import {
  type OutgoingProxy,
  outgoingProxyOf,
  type ProxyTls,
  proxyHostOf,
  type SandboxOptions,
  type SealedPassword,
  sealedPasswordOf,
} from "@skerry/wire/node";
import { type Static, Type } from "typebox";
import { invalid } from "../../errors.ts";

/** RFC 1929 has one byte for the length of each. */
const MAX_CREDENTIAL_BYTES = 255;
const MAX_HOST_LENGTH = 253;
const MAX_CA_BYTES = 8_192;
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^(?:${LABEL}\\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`, "i");
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const TlsFields = {
  enabled: Type.Boolean({ description: "Whether the connection to the proxy is TLS, with its certificate verified." }),
  serverName: Type.Optional(
    Type.String({ description: "The name for which the certificate must be valid. Default: the host of `address`." }),
  ),
};
const ProxyFields = {
  address: Type.String({ description: "`host:port` of a SOCKS5 proxy." }),
  username: nullable(Type.String({ description: "At most 255 bytes." })),
};

export const EgressProxySchema = nullable(
  Type.Object(
    {
      ...ProxyFields,
      password: nullable(Type.String({ description: "At most 255 bytes. Never shown again.", writeOnly: true })),
      tls: nullable(
        Type.Object({
          ...TlsFields,
          caCert: Type.Optional(
            Type.String({ description: "PEM of the only authorities to trust. At most 8192 bytes. Never shown again." }),
          ),
        }),
      ),
    },
    {
      description:
        "The SOCKS5 proxy through which all connections of the sandbox to the outside go. It looks names up. What the sandbox may reach is still " +
        "decided first. UDP other than DNS is closed. Absent: none.",
    },
  ),
);

export const ShownEgressProxySchema = Type.Optional(Type.Object({ ...ProxyFields, tls: nullable(Type.Object(TlsFields)) }));

/** What depends on the team, and on what the operator permits. */
export interface ProxyRules {
  /** Whether a proxy may have this IPv4 address. */
  allows(address: string): boolean;
  seal(password: Secret, credentialId: string): SealedPassword;
  /** The password that the options have; "" for none. Undefined when it cannot be decrypted. */
  passwordOf(options: SandboxOptions): string | undefined;
}

type Given = Static<typeof EgressProxySchema>;

/**
 * Throws the error for the caller when the proxy is malformed. `credentialId` is for this choice of a proxy alone. If it is the one that the
 * options have already, that one is returned, whose connections continue.
 */
export function egressProxyFrom(
  given: Given | undefined,
  { rules, credentialId, options }: { readonly rules: ProxyRules; readonly credentialId: string; readonly options: SandboxOptions },
): (OutgoingProxy & SealedPassword) | undefined {
  if (given === undefined || given === null) return undefined;
  const { address } = given;
  const [username, password] = [given.username ?? "", given.password ?? ""];
  const place = proxyHostOf(address);
  if (!place || !isHost(place.host)) {
    throw wrong("the address must be host:port, with a host name or an IPv4 address");
  }
  if (isIP(place.host) !== 0 && !rules.allows(place.host)) throw wrong(`the address ${place.host} is not public`);
  for (const [name, value] of Object.entries({ username, password })) {
    if (Buffer.byteLength(value) > MAX_CREDENTIAL_BYTES) throw wrong(`the ${name} may have at most ${MAX_CREDENTIAL_BYTES} bytes`);
    if (value.includes("\0") || !value.isWellFormed()) throw wrong(`the ${name} must be valid text without NUL`);
  }
  if (password !== "" && username === "") throw wrong("a password needs a username");
  const chosen = { credentialId, address, username, tls: tlsFrom(given.tls) };
  const former = outgoingProxyOf(options);
  if (former && isDeepStrictEqual({ ...former, credentialId }, chosen) && rules.passwordOf(options) === password) {
    return { ...former, ...sealedPasswordOf(options) };
  }
  const sealed = password === "" ? { sealed: "", keyId: "" } : rules.seal(new Secret(password), credentialId);
  return { ...chosen, ...sealed };
}

export function encodeEgressProxy({ address, username, tls }: OutgoingProxy): Static<typeof ShownEgressProxySchema> {
  const serverName = tls?.serverName ? { serverName: tls.serverName } : {};
  return { address, ...(username === "" ? {} : { username }), ...(tls ? { tls: { enabled: true, ...serverName } } : {}) };
}

function tlsFrom(given: NonNullable<Given>["tls"]): ProxyTls | undefined {
  if (given === undefined || given === null) return undefined;
  const { enabled, serverName, caCert } = given;
  if (!enabled) {
    if (serverName !== undefined || caCert !== undefined) throw wrong("tls has other fields only when it is enabled");
    return undefined;
  }
  if (serverName !== undefined && (serverName.length > MAX_HOST_LENGTH || !HOST.test(serverName))) {
    throw wrong("tls.serverName must be a host name");
  }
  if (caCert !== undefined) assertCertificates(caCert);
  return { serverName: serverName ?? "", caCert: caCert ?? "" };
}

function assertCertificates(caCert: string): void {
  if (Buffer.byteLength(caCert) > MAX_CA_BYTES) throw wrong(`tls.caCert may have at most ${MAX_CA_BYTES} bytes`);
  const found = caCert.match(CERTIFICATE) ?? [];
  try {
    for (const pem of found) new X509Certificate(pem);
    if (found.length > 0) return;
  } catch {
    // Reported below.
  }
  throw wrong("tls.caCert must be certificates in PEM");
}

function isHost(host: string): boolean {
  return isIP(host) === 4 || (host.length <= MAX_HOST_LENGTH && HOST.test(host));
}

function wrong(why: string): Error {
  return invalid(`Invalid egress proxy config: ${why}`);
}
