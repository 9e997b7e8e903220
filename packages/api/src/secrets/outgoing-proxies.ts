// The passwords of the proxies that callers choose for their sandboxes. They are encrypted in the options of the sandbox, and decrypted for its
// node alone.

import type { Logger, Secret } from "@skerry/base";
import type { OptionsChanges, Sandbox } from "@skerry/store";
import { ALL_IPV4, isInRanges, parseIpv4Range, withoutRanges } from "@skerry/wire";
import { outgoingProxyOf, type SandboxOptions, sealedPasswordOf, withOutgoingProxy } from "@skerry/wire/node";
import ipaddr from "ipaddr.js";
import type { SecretBox } from "./secret-box.ts";

const PAGE = 200;
/** Addresses of these kinds are refused at once. The node checks every connection. */
const CLOSED_KINDS: ReadonlySet<string> = new Set([
  "broadcast",
  "carrierGradeNat",
  "linkLocal",
  "loopback",
  "multicast",
  "private",
  "unspecified",
]);

export interface OutgoingProxiesDeps {
  readonly box: SecretBox;
  readonly changes: OptionsChanges;
  /** Of the operator: proxies may be there although these are not public. */
  readonly privateNetworks: readonly string[];
  readonly logger: Logger;
}

export class OutgoingProxies {
  readonly #deps: OutgoingProxiesDeps;
  constructor(deps: OutgoingProxiesDeps) {
    this.#deps = deps;
  }

  /** What a team may choose. */
  rulesFor(teamId: string) {
    const { box, privateNetworks } = this.#deps;
    const opened = withoutRanges(
      privateNetworks.map((network) => parseIpv4Range(network) ?? ALL_IPV4),
      [],
    );
    return {
      allows: (address: string) => !CLOSED_KINDS.has(ipaddr.parse(address).range()) || isInRanges(opened, address),
      seal: (password: Secret, credentialId: string) => box.seal(password, belonging(teamId, credentialId)),
      passwordOf: (options: SandboxOptions) => {
        try {
          return openPassword(box, { teamId, options })?.reveal() ?? "";
        } catch {
          return undefined;
        }
      },
    };
  }

  /** Encrypts every password with the first key that another key encrypted. One that cannot be decrypted stays as it is, and is reported. */
  async reseal(): Promise<void> {
    const { box, changes, logger } = this.#deps;
    let [resealed, afterId] = [0, ""];
    for (;;) {
      const page = await changes.listSealed({ otherThan: box.keyId, afterId, limit: PAGE });
      for (const sandbox of page) {
        try {
          const proxy = outgoingProxyOf(sandbox.options);
          const password = openPassword(box, sandbox);
          if (!proxy || !password) continue;
          const again = box.seal(password, belonging(sandbox.teamId, proxy.credentialId));
          if (await changes.reseal(sandbox, withOutgoingProxy(sandbox.options, { ...proxy, ...again }))) resealed += 1;
        } catch (error) {
          const facts = { err: error, sandbox_id: sandbox.id, key_id: sealedPasswordOf(sandbox.options).keyId };
          logger.error(facts, "the password of a sandbox's proxy cannot be decrypted");
        }
      }
      afterId = page.at(-1)?.id ?? "";
      if (page.length < PAGE) break;
    }
    if (resealed > 0) logger.info({ resealed, key_id: box.keyId }, "passwords of proxies were encrypted with the first key");
  }
}

/** The password of a sandbox's proxy. Undefined when it has none. Throws when it cannot be decrypted. */
export function openPassword(box: SecretBox, { teamId, options }: Pick<Sandbox, "teamId" | "options">): Secret | undefined {
  const sealed = sealedPasswordOf(options);
  if (sealed.sealed === "") return undefined;
  return box.open(sealed, belonging(teamId, credentialIdOf(options)));
}

/** "" without a proxy. */
export function credentialIdOf(options: SandboxOptions): string {
  return outgoingProxyOf(options)?.credentialId ?? "";
}

/** What an encrypted password is bound to. */
function belonging(teamId: string, credentialId: string): readonly string[] {
  return ["outgoing proxy", teamId, credentialId];
}
