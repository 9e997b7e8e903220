// The tokens of the content API. A token is for one volume, for a day, and either for everything or for reading alone. It is signed, and
// nothing stores it. It does not say which volume it is for: the path of a request names the volume, and the signature covers it.

import { createHmac } from "node:crypto";
import { type Clock, isSameSecret, type Secret } from "@skerry/base";
import { publicError } from "../errors.ts";

export type VolumeAccess = "read" | "write";

const TOKEN = /^skv_(r|w)_(\d{10,12})_([0-9a-f]{64})$/;
const LETTERS: Readonly<Record<VolumeAccess, string>> = { read: "r", write: "w" };

export interface VolumeTokenDeps {
  readonly tokenSeed: Secret;
  readonly clock: Clock;
  readonly lifetimeMs: number;
}

export class VolumeTokens {
  readonly #deps: VolumeTokenDeps;
  constructor(deps: VolumeTokenDeps) {
    this.#deps = deps;
  }

  make(volumeId: string, access: VolumeAccess): string {
    const expires = Math.floor((this.#deps.clock.now() + this.#deps.lifetimeMs) / 1000);
    const letter = LETTERS[access];
    return `skv_${letter}_${expires}_${this.#sign(volumeId, letter, expires)}`;
  }

  /** What the token allows. Throws when it is not for this volume, or has expired. */
  check(token: string, volumeId: string): VolumeAccess {
    const [, letter = "", expires = "", signature = ""] = TOKEN.exec(token) ?? [];
    if (letter === "" || !isSameSecret(signature, this.#sign(volumeId, letter, Number(expires)))) {
      throw publicError("unauthenticated", "The volume token is not valid for this volume");
    }
    if (Number(expires) * 1000 <= this.#deps.clock.now()) {
      throw publicError("unauthenticated", "The volume token has expired: connect to the volume again, which gives a new one");
    }
    return letter === "w" ? "write" : "read";
  }

  #sign(volumeId: string, letter: string, expires: number): string {
    return createHmac("sha256", this.#deps.tokenSeed.reveal()).update(`volume:${volumeId}:${letter}:${expires}`).digest("hex");
  }
}
