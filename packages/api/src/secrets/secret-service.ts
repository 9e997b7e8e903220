// The vault of teams' secrets. A value is encrypted when it arrives. No operation returns one. The headers of a sandbox's rules use them
// (sandbox-secrets.ts), outside of the sandbox.

import type { Clock, Logger, Secret } from "@skerry/base";
import type { SecretReference, SecretRepository, StoredSecret } from "@skerry/store";
import { publicError } from "../errors.ts";
import { type Page, pageOf } from "../page.ts";
import type { SecretBox } from "./secret-box.ts";
import { newSecretId } from "./secret-id.ts";

/** How many secrets a team may have. */
const MAX_SECRETS = 1_000;
const RESEAL_PAGE = 200;

export interface SecretChange {
  readonly value: Secret;
  /** Undefined keeps the present metadata. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

export interface SecretServiceDeps {
  readonly secrets: SecretRepository;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tests use fewer. */
  readonly maxSecrets?: number;
}

export class SecretService {
  readonly #deps: SecretServiceDeps;
  constructor(deps: SecretServiceDeps) {
    this.#deps = deps;
  }

  async create(teamId: string, name: string, { value, metadata }: SecretChange): Promise<StoredSecret> {
    const { secrets, box, clock, maxSecrets = MAX_SECRETS } = this.#deps;
    const now = clock.now();
    const secret = { id: newSecretId(now), teamId, name, version: 1, metadata: metadata ?? {}, createdAt: now, updatedAt: now };
    const added = await secrets.add({ ...secret, ...box.seal(value, belonging(secret)) }, maxSecrets);
    if (added === "added") return secret;
    if (added === "taken") throw publicError("conflict", `There is a secret with the name ${name} already`);
    throw publicError("limit_reached", `The team has ${maxSecrets} secrets, and may have no more`, { detailCode: "secret_limit_reached" });
  }

  async get(teamId: string, reference: SecretReference): Promise<StoredSecret> {
    const secret = await this.#deps.secrets.find(teamId, reference);
    if (!secret) throw notFound();
    return secret;
  }

  async list(
    teamId: string,
    page: { readonly limit: number; readonly after?: { readonly createdAt: number; readonly id: string } },
  ): Promise<Page<StoredSecret>> {
    return pageOf(await this.#deps.secrets.list(teamId, { ...page, limit: page.limit + 1 }), page.limit);
  }

  /** Gives the secret a new value, and with it the next version. Of two changes at once, both count, one after the other. */
  async update(teamId: string, reference: SecretReference, { value, metadata }: SecretChange): Promise<StoredSecret> {
    const { secrets, box, clock } = this.#deps;
    for (;;) {
      const secret = await this.get(teamId, reference);
      const sealed = box.seal(value, belonging({ ...secret, version: secret.version + 1 }));
      const changed = await secrets.replace(secret, { ...sealed, metadata, now: clock.now() });
      if (changed) return changed;
    }
  }

  async remove(teamId: string, reference: SecretReference): Promise<void> {
    if (!(await this.#deps.secrets.remove(teamId, reference, this.#deps.clock.now()))) throw notFound();
  }

  /**
   * Encrypts everything with the first key that another key encrypted. A value whose key is missing, or that is damaged, stays as it is, and
   * is reported.
   */
  async reseal(): Promise<{ readonly resealed: number; readonly left: number }> {
    const { secrets, box, logger } = this.#deps;
    let [resealed, left, afterId] = [0, 0, ""];
    for (;;) {
      const page = await secrets.listOfOtherKeys(box.keyId, { afterId, limit: RESEAL_PAGE });
      for (const secret of page) {
        try {
          const value = box.open(secret, belonging(secret));
          if (await secrets.reseal(secret, box.seal(value, belonging(secret)))) resealed += 1;
        } catch (error) {
          left += 1;
          const facts = { err: error, secret_id: secret.id, team_id: secret.teamId, key_id: secret.keyId };
          logger.error(facts, "a secret cannot be decrypted: its encryption key is missing, or its row was changed");
        }
      }
      afterId = page.at(-1)?.id ?? "";
      if (page.length < RESEAL_PAGE) break;
    }
    if (resealed > 0) logger.info({ resealed, key_id: box.keyId }, "secrets were encrypted with the first key");
    return { resealed, left };
  }
}

/** What an encrypted value is bound to. */
export function belonging(secret: Pick<StoredSecret, "id" | "teamId" | "version">): readonly string[] {
  return ["secret", secret.teamId, secret.id, String(secret.version)];
}

function notFound(): Error {
  return publicError("not_found", "Secret not found");
}
