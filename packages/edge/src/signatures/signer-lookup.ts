import type { SandboxId } from "@skerry/wire";
import { LRUCache } from "lru-cache";
import type { FindSigner } from "../ports.ts";
import type { AttemptLimit } from "./attempt-limit.ts";
import type { SignedFile } from "./signed-request.ts";

/** How long the edge caches the sandbox of a signature. The sandbox of a signature never changes, so this only bounds memory. */
const KEEP_MS = 60_000;

/** Maximum number of cached signatures, at about 200 bytes each. */
const MAX_CACHED = 10_000;

export type SignerAnswer =
  | { readonly kind: "found"; readonly sandboxId: SandboxId }
  /** No running sandbox made the signature. */
  | { readonly kind: "unknown" }
  /** The address has caused too many failed lookups. */
  | { readonly kind: "limited" };

/** Finds the sandbox of a signed file URL. Limits the failed lookups of each client address. */
export class SignerLookup {
  readonly #findSigner: FindSigner;
  readonly #attempts: AttemptLimit;
  readonly #known = new LRUCache<string, SandboxId>({ max: MAX_CACHED, ttl: KEEP_MS });

  constructor(findSigner: FindSigner, attempts: AttemptLimit) {
    this.#findSigner = findSigner;
    this.#attempts = attempts;
  }

  /** Throws if the control plane does not answer. The token is taken before the lookup, so it also limits parallel lookups. */
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
