import { randomBytes } from "node:crypto";
import { type Logger, Secret } from "@skerry/base";
import type { OwnedWebhook, SealedValue, Webhook, WebhookRepository } from "@skerry/store";
import type { SecretBox } from "../secrets/secret-box.ts";

/** As Standard Webhooks writes them. */
const PREFIX = "whsec_";
const SECRET_BYTES = 32;
const PAGE = 100;

/** The secrets that sign deliveries. They are encrypted in the database, each bound to its webhook. */
export class WebhookSecrets {
  readonly #box: SecretBox;
  constructor(box: SecretBox) {
    this.#box = box;
  }

  make(): Secret {
    return new Secret(PREFIX + randomBytes(SECRET_BYTES).toString("base64"));
  }

  seal(hook: Pick<Webhook, "id" | "teamId">, secret: Secret): SealedValue {
    return this.#box.seal(secret, belonging(hook));
  }

  open(hook: OwnedWebhook): Secret {
    return this.#box.open(hook, belonging(hook));
  }

  /** Encrypts everything with the first key that another key encrypted. What cannot be opened stays as it is, and is reported. */
  async reseal(webhooks: WebhookRepository, logger: Logger): Promise<void> {
    for (let afterId = ""; ; ) {
      const page = await webhooks.listOfOtherKeys(this.#box.keyId, { afterId, limit: PAGE });
      for (const hook of page) {
        try {
          await webhooks.reseal(hook, this.seal(hook, this.open(hook)));
        } catch (error) {
          logger.error({ err: error, webhook_id: hook.id, key_id: hook.keyId }, "the secret of a webhook cannot be decrypted");
        }
      }
      afterId = page.at(-1)?.id ?? "";
      if (page.length < PAGE) return;
    }
  }
}

function belonging({ id, teamId }: Pick<Webhook, "id" | "teamId">): readonly string[] {
  return ["webhook", teamId, id];
}
