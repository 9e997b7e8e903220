import type { SandboxId } from "@skerry/wire";
import { LRUCache } from "lru-cache";
import type { FindSigner } from "../ports.ts";
import type { AttemptLimit } from "./attempt-limit.ts";
import type { SignedFile } from "./signed-request.ts";

/** How long the edge remembers the sandbox of a signature. The answer never changes; this bounds how long it is kept in memory. */
const KEEP_MS = 60_000;

/** Maximum number of signatures that are remembered, at about 200 bytes each. */
const MAX_REMEMBERED = 10_000;

export type SignerAnswer =
  | { readonly kind: "found"; readonly sandboxId: SandboxId }
  /** No running sandbox made the signature. */
  | { readonly kind: "unknown" }
  /** This address failed too often. */
  | { readonly kind: "limited" };

/** Finds the sandbox of a signed file URL. Limits how many searches an address can cause, except for those that succeed. */
export class SignerLookup {
  readonly #findSigner: FindSigner;
  readonly #attempts: AttemptLimit;
  readonly #known = new LRUCache<string, SandboxId>({ max: MAX_REMEMBERED, ttl: KEEP_MS });

  constructor(findSigner: FindSigner, attempts: AttemptLimit) {
    this.#findSigner = findSigner;
    this.#attempts = attempts;
  }

  /** Throws when the control plane does not answer. The token is taken before the search, so it also limits parallel searches. */
  async find(file: SignedFile, clientAddress: string): Promise<SignerAnswer> {
    const known = this.#known.get(file.signature);
    if (known !== undefined) return { kind: "found", sandboxId: known };
    if (!this.#attempts.take(clientAddress)) return { kind: "limited" };
    let sandboxId: SandboxId | undefined;
    try {
      sandboxId = await this.#findSigner(file);
    } catch (error) {
      this.#attempts.giveBack(clientAddress);
      throw error;
    }
    if (sandboxId === undefined) return { kind: "unknown" };
    this.#attempts.giveBack(clientAddress);
    this.#known.set(file.signature, sandboxId);
    return { kind: "found", sandboxId };
  }
}
