// Headers that the platform adds to HTTPS requests of a sandbox to named hosts. A value may refer to secrets of the team by their names. The
// control plane puts in their values, and only for the memory of the node: a sandbox, a record and an answer never have them.

import type { SandboxOptions } from "./sandbox-options.ts";

/** Headers for requests to a host, which is a name in lower case or "*." and a name. */
export interface HeaderRule {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A reference in a header's value: to a secret of the team, or to a workload token of the sandbox. */
export interface Placeholder {
  readonly kind: "secret" | "token";
  readonly name: string;
}

const PLACEHOLDER = /\$\{e2b\.(secrets|identity\.tokens)\.([^{}]*)\}/g;
/** What begins like a placeholder. */
const BEGINNING = "${e2b.";

export function headerRulesOf({ headerRules }: SandboxOptions): readonly HeaderRule[] {
  return (headerRules?.rules ?? []).map(({ host = "", headers = {} }) => ({ host, headers }));
}

/** Options with these rules; without any for an empty list. */
export function withHeaderRules(options: SandboxOptions, authorityId: string, rules: readonly HeaderRule[]): SandboxOptions {
  const { headerRules: _former, ...rest } = options;
  return rules.length > 0 ? { ...rest, headerRules: { authorityId, rules } } : rest;
}

/** Names the certificate authority with which requests are intercepted. Forks have that of their sandbox, whose programs trust it already. */
export function authorityIdOf({ headerRules }: SandboxOptions): string {
  return headerRules?.authorityId ?? "";
}

/**
 * The rule for a host: that for its name, or else that with the longest wildcard. A wildcard is for names at any depth below its own, and not
 * for its own.
 */
export function ruleForHost<T extends { readonly host: string }>(rules: readonly T[], host: string): T | undefined {
  const name = host.toLowerCase().replace(/\.$/, "");
  const exact = rules.find((rule) => rule.host === name);
  if (exact) return exact;
  const matching = rules.filter(
    (rule) => rule.host.startsWith("*.") && name.endsWith(rule.host.slice(1)) && name.length > rule.host.length - 1,
  );
  return matching.toSorted((a, b) => b.host.length - a.host.length)[0];
}

/** Undefined when something in the value begins like a placeholder and is none. */
export function placeholdersIn(value: string): readonly Placeholder[] | undefined {
  const found = [...value.matchAll(PLACEHOLDER)].map(([, kind, name = ""]) => ({
    kind: kind === "secrets" ? ("secret" as const) : ("token" as const),
    name,
  }));
  return value.split(BEGINNING).length - 1 === found.length ? found : undefined;
}

/** Puts `values` in place of the placeholders. Undefined when one of them has no value. */
export function filledIn(value: string, find: (placeholder: Placeholder) => string | undefined): string | undefined {
  let isComplete = true;
  const text = value.replaceAll(PLACEHOLDER, (_all, kind: string, name: string) => {
    const found = find({ kind: kind === "secrets" ? "secret" : "token", name });
    if (found === undefined) isComplete = false;
    return found ?? "";
  });
  return isComplete ? text : undefined;
}
