// Watches a pull, because skopeo bounds neither how long a registry may send nothing nor how much it may send for a layer.

import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import type { OciImage } from "./pull.privileged.ts";

const LOOK_MS = 500;
const SILENCE_MS = 60_000;
/** For the configuration, the manifest and an index. */
const OTHER_BYTES = 16 * 1024 * 1024;

export interface PullWatch extends AsyncDisposable {
  /** Aborted with the caller's signal, or when the pull should end. */
  readonly signal: AbortSignal;
  /** Why the pull should end. */
  readonly failure: PlatformError | undefined;
}

export function watchPull(options: {
  readonly image: OciImage;
  readonly layoutDir: string;
  readonly silenceMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}): PullWatch {
  const { image, layoutDir, silenceMs = SILENCE_MS } = options;
  const maxBytes = image.layers.reduce((sum, { size }) => sum + size, OTHER_BYTES);
  const controller = new AbortController();
  let failure: PlatformError | undefined;
  let [pulled, grewAt] = [0, performance.now()];
  const end = (error: PlatformError) => {
    failure = error;
    controller.abort(error);
  };
  const look = async () => {
    const bytes = await bytesBelow(layoutDir);
    if (bytes !== pulled) [pulled, grewAt] = [bytes, performance.now()];
    if (bytes > maxBytes) end(new PlatformError("oci_image_damaged", "the registry sends more than the manifest of the image names"));
    else if (performance.now() - grewAt > silenceMs) {
      end(new PlatformError("registry_unreachable", `the registry has sent nothing for ${Math.round(silenceMs / 1000)} s`));
    }
  };
  let looking = Promise.resolve();
  const timer = setInterval(() => {
    looking = looking.then(look, () => {});
  }, LOOK_MS);
  return {
    signal: AbortSignal.any([controller.signal, ...(options.signal ? [options.signal] : [])]),
    get failure() {
      return failure;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking.catch(() => {});
    },
  };
}

async function bytesBelow(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(entries.map(({ parentPath, name }) => lstat(join(parentPath, name)).then(fileBytes, () => 0)));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

const fileBytes = (stats: Stats) => (stats.isFile() ? stats.size : 0);
