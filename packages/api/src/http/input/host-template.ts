import { isIPv4, isIPv6 } from "node:net";

/** Stands for the port of a request. */
const PORT = "${PORT}";

/** The longest name in DNS, a colon and a port. */
const MAX_LENGTH = 259;

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** Says what is wrong with a text that a Host field is to be made from: `host` or `host:port`, both with `${PORT}` anywhere. */
export function hostTemplateProblem(template: string): string | undefined {
  if (template === "") return "it is empty";
  if (template.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`;
  // The longest value, so that the result is valid for every port.
  const host = template.replaceAll(PORT, "65535");
  const match = /^(?<name>\[[^\]]*\]|[^:[\]]*)(?::(?<port>.*))?$/s.exec(host);
  const { name = "", port } = match?.groups ?? {};
  if (!match || !isName(name)) return "it must be a host name or an IP address, with or without a port";
  if (port !== undefined && !isPort(port)) return "its port must be a number from 1 to 65535";
  return undefined;
}

function isName(name: string): boolean {
  if (name.startsWith("[")) return !name.includes("%") && isIPv6(name.slice(1, -1));
  // Programs read a name that ends with a number as an IPv4 address.
  if (/(^|\.)(\d+|0x[0-9a-f]*)$/i.test(name)) return isIPv4(name);
  return name.length <= 253 && name.split(".").every((label) => LABEL.test(label));
}

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535;
}
