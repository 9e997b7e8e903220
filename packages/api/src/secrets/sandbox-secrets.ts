// What a node needs for the options of a sandbox and may keep in memory only: the headers of its rules with the present values of the team's
// secrets, the seed of its certificate authority, and the password of its proxy. Nothing stores the result. A node that has lost it in a restart, or has it with former
// values, gets it again (sandboxes/reconcile/left-secrets.ts).

import { createHmac } from "node:crypto";
import type { Logger, Secret } from "@skerry/base";
import type { Sandbox, SealedValue, SecretRepository, StoredSecret } from "@skerry/store";
import { authorityIdOf, filledIn, type HeaderRule, headerRulesOf, outgoingProxyOf, placeholdersIn } from "@skerry/wire/node";
import { credentialIdOf, openPassword } from "./outgoing-proxies.ts";
import type { SecretBox } from "./secret-box.ts";
import { belonging } from "./secret-service.ts";

export interface FilledRule {
  readonly host: string;
  readonly headers: Record<string, string>;
  readonly problem: string;
}

/** Has the form of the message. */
export interface SandboxSecrets {
  readonly version: string;
  readonly authoritySeed: string;
  readonly rules: FilledRule[];
  readonly proxyPassword?: { readonly credentialId: string; readonly password: string };
}

type Owner = Pick<Sandbox, "teamId" | "options">;
type Named = ReadonlyMap<string, StoredSecret & SealedValue>;

/** What HTTP permits in a header's value, and no more. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface SandboxSecretsDeps {
  readonly secrets: SecretRepository;
  readonly box: SecretBox;
  readonly tokenSeed: Secret;
  readonly logger: Logger;
}

export class SandboxSecretsSource {
  readonly #deps: SandboxSecretsDeps;
  constructor(deps: SandboxSecretsDeps) {
    this.#deps = deps;
  }

  /** Undefined when the options need nothing of it. Secrets that do not exist are no failure: requests that need them are. */
  async of({ teamId, options }: Owner): Promise<SandboxSecrets | undefined> {
    const rules = headerRulesOf(options);
    const proxy = outgoingProxyOf(options);
    if (rules.length === 0 && !proxy) return undefined;
    const named = await this.#named(teamId, rules);
    const values = new Map([...named].map(([name, secret]) => [name, this.#valueOf(secret)]));
    return {
      version: this.#versionFor({ teamId, options }, named),
      authoritySeed: rules.length === 0 ? "" : this.#digest("authority", authorityIdOf(options)),
      rules: rules.map((rule) => filled(rule, values)),
      ...(proxy && this.#passwordFor({ teamId, options })),
    };
  }

  #passwordFor(owner: Owner): Pick<SandboxSecrets, "proxyPassword"> {
    try {
      const password = openPassword(this.#deps.box, owner)?.reveal() ?? "";
      return { proxyPassword: { credentialId: credentialIdOf(owner.options), password } };
    } catch (error) {
      this.#deps.logger.error({ err: error, team_id: owner.teamId }, "the password of a sandbox's proxy cannot be decrypted");
      return {};
    }
  }

  /** The version that a node with the present values has. */
  async versionOf(owner: Owner): Promise<string> {
    return this.#versionFor(owner, await this.#named(owner.teamId, headerRulesOf(owner.options)));
  }

  async #named(teamId: string, rules: readonly HeaderRule[]): Promise<Named> {
    const found = await this.#deps.secrets.findNamed(teamId, secretNamesIn(rules));
    return new Map(found.map((secret) => [secret.name, secret]));
  }

  #versionFor({ teamId, options }: Owner, named: Named): string {
    const rules = headerRulesOf(options);
    const secrets = secretNamesIn(rules).map((name) => [name, named.get(name)?.id, named.get(name)?.version]);
    return this.#digest("version", JSON.stringify([teamId, authorityIdOf(options), rules, secrets, credentialIdOf(options)]));
  }

  #valueOf(secret: StoredSecret & SealedValue): Secret | undefined {
    try {
      return this.#deps.box.open(secret, belonging(secret));
    } catch (error) {
      this.#deps.logger.error(
        { err: error, secret_id: secret.id, team_id: secret.teamId },
        "a secret of a header rule cannot be decrypted",
      );
      return undefined;
    }
  }

  /** Keyed, so that it reveals nothing of what it is made from. */
  #digest(what: string, text: string): string {
    return createHmac("sha256", this.#deps.tokenSeed.reveal()).update(`sandbox secrets ${what}:${text}`).digest("hex");
  }
}

/** Sorted, each once. Names are stored in lower case. */
function secretNamesIn(rules: readonly HeaderRule[]): readonly string[] {
  const values = rules.flatMap(({ headers }) => Object.values(headers));
  const secrets = values.flatMap((value) => placeholdersIn(value) ?? []).filter(({ kind }) => kind === "secret");
  return [...new Set(secrets.map(({ name }) => name.toLowerCase()))].toSorted();
}

/** A rule without a value for one of its placeholders, or with a value that no header can have, is sent without any of its headers. */
function filled({ host, headers }: HeaderRule, values: ReadonlyMap<string, Secret | undefined>): FilledRule {
  const made: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const text = filledIn(value, ({ kind, name: secret }) => (kind === "secret" ? values.get(secret.toLowerCase())?.reveal() : undefined));
    if (text === undefined) return { host, headers: {}, problem: `the header ${name} refers to a secret that does not exist` };
    if (!HEADER_VALUE.test(text))
      return { host, headers: {}, problem: `the value of the header ${name} has a character that no header can have` };
    made[name] = text;
  }
  return { host, headers: made, problem: "" };
}
