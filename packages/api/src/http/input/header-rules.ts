// The rules of a sandbox for headers of its requests, as callers give them: for each host a list with at most one rule.

import { type HeaderRule, placeholdersIn } from "@skerry/wire/node";
import { type Static, Type } from "typebox";
import { invalid } from "../../errors.ts";

const MAX_HOSTS = 10;
const MAX_HOST_LENGTH = 128;
const MAX_HEADERS = 20;
const MAX_NAME_LENGTH = 64;
const MAX_VALUE_LENGTH = 2_048;
const MAX_SECRETS = 32;

const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^(\\*\\.)?(${LABEL}\\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const SECRET_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
/** They say where a request goes and where it ends, which the platform must decide. */
const RESERVED = new Set(
  "connection content-length expect host keep-alive proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(" "),
);

export const HeaderRulesSchema = Type.Record(
  Type.String(),
  Type.Array(
    Type.Object({
      transform: Type.Optional(Type.Object({ headers: Type.Optional(Type.Record(Type.String(), Type.String())) })),
    }),
  ),
  {
    description:
      "Headers that HTTPS requests to a host get, by its name or `*.` and a name. `${e2b.secrets.<name>}` in a value stands for a secret of the " +
      "team, which the sandbox never sees. A rule does not allow a sandbox to reach its host.",
  },
);

type Given = Static<typeof HeaderRulesSchema>;

/** Throws the error for the caller when a rule is malformed. */
export function headerRulesFrom(given: Given): HeaderRule[] {
  const rules = Object.entries(given).map(([host, list]) => ({ host: host.toLowerCase(), headers: headersOf(host, list) }));
  if (rules.length > MAX_HOSTS) throw invalid(`network rules are not valid: there may be at most ${MAX_HOSTS} hosts`);
  const twice = rules.find(({ host }, at) => rules.findIndex((other) => other.host === host) !== at);
  if (twice) throw invalid(`network rules are not valid: ${twice.host} is there twice`);
  const values = rules.flatMap(({ headers }) => Object.values(headers));
  const secrets = new Set(values.flatMap((value) => placeholdersIn(value) ?? []).map(({ name }) => name.toLowerCase()));
  if (secrets.size > MAX_SECRETS) throw invalid(`network rules are not valid: they may refer to at most ${MAX_SECRETS} secrets`);
  return rules;
}

export function encodeHeaderRules(rules: readonly HeaderRule[]): Given {
  return Object.fromEntries(
    rules.map(({ host, headers }) => [host, Object.keys(headers).length > 0 ? [{ transform: { headers: { ...headers } } }] : []]),
  );
}

function headersOf(host: string, list: Given[string]): Record<string, string> {
  const wrong = (why: string) => invalid(`network rules are not valid: ${host.slice(0, MAX_HOST_LENGTH)}: ${why}`);
  if (host.length > MAX_HOST_LENGTH || !HOST.test(host.toLowerCase())) throw wrong("this is no host name, and no '*.' with one");
  if (list.length > 1) throw wrong("a host may have at most one rule");
  const headers = list[0]?.transform?.headers ?? {};
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  if (names.length > MAX_HEADERS) throw wrong(`a rule may have at most ${MAX_HEADERS} headers`);
  if (new Set(names).size < names.length) throw wrong("a header is there twice");
  for (const [name, value] of Object.entries(headers)) {
    const problem = headerProblem(name, value);
    if (problem !== undefined) throw wrong(`the header ${name.slice(0, MAX_NAME_LENGTH)} ${problem}`);
  }
  return headers;
}

/** The message must not contain the value, which may be a secret itself. */
function headerProblem(name: string, value: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !HEADER_NAME.test(name)) return "has no valid name";
  if (RESERVED.has(name.toLowerCase())) return "cannot be set by a rule";
  if (value.length > MAX_VALUE_LENGTH) return `may have at most ${MAX_VALUE_LENGTH} characters`;
  if (!HEADER_VALUE.test(value)) return "has a character that no header can have";
  const placeholders = placeholdersIn(value);
  if (!placeholders) return "has a malformed placeholder";
  if (placeholders.some(({ kind }) => kind === "token")) return "refers to a workload token, which are not available for your team";
  if (placeholders.some((placeholder) => !SECRET_NAME.test(placeholder.name))) return "refers to a secret with an impossible name";
  return undefined;
}
