import { isIP } from "node:net";
import { isAbsolute } from "node:path";

/** Where the certificate of the TLS listener comes from, if the platform obtains it with ACME (RFC 8555). */
export interface AcmeSettings {
  /** URL of the authority's directory. */
  readonly directory: string;
  /** Address to which the authority writes when something is wrong. */
  readonly contact: string;
  /** Program that sets and removes the DNS records of challenges. */
  readonly hook: string;
}

export interface AcmeInput {
  readonly directory: string | undefined;
  readonly contact: string | undefined;
  readonly hook: string | undefined;
  readonly agree: boolean;
}

const KNOWN: Readonly<Record<string, string>> = {
  letsencrypt: "https://acme-v02.api.letsencrypt.org/directory",
  "letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
};

/** Names of the settings, as the user gave them. */
export type AcmeNames = Readonly<Record<keyof AcmeInput | "domain", string>>;

/** Checks the settings. `problem` is called for each mistake. */
export function readAcmeSettings(input: AcmeInput, domain: string, names: AcmeNames, problem: (text: string) => void): AcmeSettings {
  const directory = KNOWN[input.directory ?? ""] ?? input.directory ?? "";
  const { contact = "", hook = "" } = input;
  if (URL.parse(directory)?.protocol !== "https:")
    problem(`${names.directory} takes ${Object.keys(KNOWN).join(", ")} or the https URL of an ACME directory, not "${directory}"`);
  if (!/^[^@\s:,?]+@[^@\s,?]+$/.test(contact)) problem(`${names.contact} must be an e-mail address, to which the authority writes`);
  if (!isAbsolute(hook))
    problem(`${names.hook} must be the absolute path of the program that sets the DNS records of challenges (docs/tls.md)`);
  if (!input.agree) problem(`${names.agree} is missing: with it, you agree to the terms of service of the authority`);
  const name = acmeName(domain);
  if (!name.includes(".") || isIP(name) !== 0 || /(^|\.)localhost$/.test(name))
    problem(`no public authority signs "*.${name}": set ${names.domain} to a domain of yours`);
  return { directory, contact, hook };
}

/** The host name of a domain, which may have a port. */
export const acmeName = (domain: string) => domain.split(":", 1)[0]?.toLowerCase() ?? "";
