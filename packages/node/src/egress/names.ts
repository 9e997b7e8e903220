// Names of hosts, and the rules of a policy that match them.

/** A name has at most 253 characters in labels of 1 to 63. Underscores occur in names of services. */
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const MAX_LENGTH = 253;
/** What programs take for an IPv4 address, also in its unusual forms: the last label is a number. */
const ADDRESS = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/** The name in lower case and without a dot at its end; undefined for an address, and for anything that is no name. */
export function hostName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, "");
  return name.length <= MAX_LENGTH && NAME.test(name) && !ADDRESS.test(name) ? name : undefined;
}

/** Finds the rule for a name in constant time, however many rules there are. */
export class NameRules {
  readonly #exact = new Map<string, string>();
  /** By what follows "*.". */
  readonly #below = new Map<string, string>();
  readonly #everything: string | undefined;

  /** Rules are names, `*.` followed by a name, which matches all names below it but not itself, and `*`, which matches every name. */
  constructor(rules: readonly string[]) {
    for (const rule of rules) {
      const plain = rule.toLowerCase().replace(/\.$/, "");
      if (plain === "*") continue;
      if (plain.startsWith("*.")) this.#below.set(plain.slice(2), rule);
      else this.#exact.set(plain, rule);
    }
    this.#everything = rules.find((rule) => rule === "*");
  }

  get isEmpty(): boolean {
    return this.#everything === undefined && this.#exact.size === 0 && this.#below.size === 0;
  }

  /** The rule that matches a name as `hostName` returns it: the exact one, or the longest wildcard. */
  find(name: string): string | undefined {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    for (let dot = name.indexOf("."); dot !== -1 && this.#below.size > 0; dot = name.indexOf(".", dot + 1)) {
      const below = this.#below.get(name.slice(dot + 1));
      if (below !== undefined) return below;
    }
    return this.#everything;
  }
}
