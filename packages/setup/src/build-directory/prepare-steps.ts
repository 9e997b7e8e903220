import type { DockerfileStep } from "@skerry/dockerfile";
import { BuildDirectory } from "./build-directory.ts";
import { hashFiles } from "./copy-archive.ts";
import { type CopyFiles, findCopyFiles } from "./copy-files.ts";

/** A step of a build on the wire. */
export interface WireStep {
  readonly type: string;
  readonly args: readonly string[];
  readonly filesHash?: string;
}

export interface PreparedStep extends WireStep {
  readonly line: number;
  readonly files?: CopyFiles;
}

/** Finds and hashes the files of every COPY, so that nothing is requested when one is missing. */
export async function prepareSteps(
  steps: readonly DockerfileStep[],
  options: { readonly directory: string; readonly dockerfile: string },
): Promise<readonly PreparedStep[]> {
  const directory = await BuildDirectory.open(options.directory, options.dockerfile);
  const prepared: PreparedStep[] = [];
  for (const step of steps) {
    const { type, args, line } = step;
    if (type !== "COPY") {
      prepared.push({ type, args, line });
      continue;
    }
    const files = await findCopyFiles(step, directory);
    prepared.push({ type, args: files.args, filesHash: hashFiles(files), line, files });
  }
  return prepared;
}
