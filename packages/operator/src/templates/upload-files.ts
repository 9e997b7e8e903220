import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerfileStep } from "@skerry/dockerfile";
import { BuildDirectory } from "./build-directory.ts";
import { hashFiles, writeArchive } from "./copy-archive.ts";
import { type CopyFiles, findCopyFiles } from "./copy-files.ts";
import type { PlatformClient } from "./platform-client.ts";

/** A step of a build on the wire. */
export interface WireStep {
  readonly type: string;
  readonly args: readonly string[];
  readonly filesHash?: string;
}

interface PreparedStep extends WireStep {
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

export interface Uploaded {
  readonly files: number;
  readonly bytes: number;
  readonly steps: number;
}

/** Uploads the files that the platform does not have yet. */
export async function uploadFiles(
  client: PlatformClient,
  steps: readonly PreparedStep[],
  options: { readonly templateId: string; readonly signal: AbortSignal },
): Promise<Uploaded> {
  const folder = await mkdtemp(join(tmpdir(), "skerry-build-"));
  const total = { files: 0, bytes: 0, steps: 0 };
  try {
    for (const { filesHash, files } of steps) {
      if (filesHash === undefined || files === undefined) continue;
      const link = await client.call<UploadLink>("GET", `/templates/${options.templateId}/files/${filesHash}`, options);
      if (link.present || link.url === undefined) continue;
      const archive = join(folder, `${filesHash}.tar`);
      await writeArchive(files, archive);
      const { size } = await stat(archive);
      await client.upload(link.url, { file: archive, headers: link.headers ?? {}, signal: options.signal });
      await rm(archive);
      total.files += files.entries.size;
      total.bytes += size;
      total.steps++;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return total;
}

interface UploadLink {
  readonly present: boolean;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
