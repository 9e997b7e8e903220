import { hash, timingSafeEqual } from "node:crypto";
import type { Clock } from "@skerry/base";
import type { SandboxRepository } from "@skerry/store";
import { type SignedFileRequest, signatureDigest, signedText } from "@skerry/wire";
import type { FindSignerRequest } from "@skerry/wire/control";

/**
 * Maximum number of sandboxes that one search compares, which takes a few milliseconds of CPU time. The default limit of a
 * team's running sandboxes is the same. Stated in docs/compatibility.md and spec/control/control.proto.
 */
export const MAX_CANDIDATES = 1_000;

/** Maximum length of a path or a user name in a signed URL. Linux accepts paths of up to 4,095 bytes. */
const MAX_TEXT_LENGTH = 4_096;

export interface SignerSearchDeps {
  readonly sandboxes: Pick<SandboxRepository, "listRoutedIds">;
  readonly accessTokenOf: (sandboxId: string) => string;
  readonly clock: Clock;
}

/**
 * Finds the running sandbox whose access token made a file signature. The duration of a search depends on the number of
 * running sandboxes and on the length of the request only: every candidate is compared, also after a match.
 */
export class SignerSearch {
  readonly #deps: SignerSearchDeps;
  /** The tokens of the last search's candidates. Deriving a token takes longer than comparing it. */
  #tokens: ReadonlyMap<string, string> = new Map();

  constructor(deps: SignerSearchDeps) {
    this.#deps = deps;
  }

  async find(request: FindSignerRequest): Promise<string | undefined> {
    const digest = signatureDigest(request.signature);
    const signed = signedRequestFrom(request);
    if (digest === undefined || !signed) return undefined;
    const ids = await this.#deps.sandboxes.listRoutedIds(this.#deps.clock.now(), MAX_CANDIDATES);
    this.#tokens = new Map(ids.map((id) => [id, this.#tokens.get(id) ?? this.#deps.accessTokenOf(id)]));
    return findSigner(signed, { digest: Buffer.from(digest, "base64"), tokens: this.#tokens });
  }
}

function findSigner(
  signed: SignedFileRequest,
  { digest, tokens }: { digest: Buffer; tokens: ReadonlyMap<string, string> },
): string | undefined {
  let signer: string | undefined;
  for (const [id, token] of tokens) {
    if (timingSafeEqual(hash("sha256", signedText(signed, token), "buffer"), digest)) signer = id;
  }
  return signer;
}

function signedRequestFrom({ path, username, operation, expiration }: FindSignerRequest): SignedFileRequest | undefined {
  if (operation !== "read" && operation !== "write") return undefined;
  if (path.length > MAX_TEXT_LENGTH || username.length > MAX_TEXT_LENGTH) return undefined;
  return { path, username, operation, expiration: expiration === undefined ? undefined : Number(expiration) };
}
