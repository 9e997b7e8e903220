// Holds: which layers must stay although neither a sandbox nor an image of this node refers to them. Each holder has one file,
// `holds/<holder>.json`, with the digests of its layers.

import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import { syncDirectory } from "@skerry/base/linux";
import type { LayerDigest } from "./layer-digest.ts";

const SUFFIX = ".json";
const HOLDER = /^[a-z0-9][a-z0-9-]{0,99}$/;

export class LayerHolds {
  readonly #dir: string;

  constructor(root: string) {
    this.#dir = join(root, "holds");
  }

  open(): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
  }

  of(holder: string): readonly string[] {
    return this.#read(this.#fileOf(holder));
  }

  /** Replaces what the holder holds. It survives a power loss when this returns. */
  set(holder: string, digests: readonly LayerDigest[]): void {
    const file = this.#fileOf(holder);
    const descriptor = openSync(`${file}.new`, "w", 0o600);
    try {
      writeFileSync(descriptor, JSON.stringify({ layers: digests }));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(`${file}.new`, file);
    syncDirectory(this.#dir);
  }

  release(holder: string): void {
    rmSync(this.#fileOf(holder), { force: true });
  }

  /** The digests that any holder holds. Throws when a file of a holder cannot be read: its layers are not known then. */
  all(): ReadonlySet<string> {
    return new Set(this.holders().flatMap((holder) => this.#read(this.#fileOf(holder))));
  }

  holders(): readonly string[] {
    return readdirSync(this.#dir).flatMap((name) => (name.endsWith(SUFFIX) ? [name.slice(0, -SUFFIX.length)] : []));
  }

  #fileOf(holder: string): string {
    if (!HOLDER.test(holder)) throw new PlatformError("layer_holder_invalid", `not a name of a holder of layers: ${holder.slice(0, 100)}`);
    return join(this.#dir, `${holder}${SUFFIX}`);
  }

  #read(file: string): readonly string[] {
    try {
      const { layers } = JSON.parse(readFileSync(file, "utf8")) as { layers: readonly string[] };
      if (!Array.isArray(layers)) throw new SyntaxError(`${file} lists no layers`);
      return layers;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    }
  }
}
