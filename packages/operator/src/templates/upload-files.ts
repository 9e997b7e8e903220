import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PreparedStep, writeArchive } from "@skerry/setup/build-directory";
import type { PlatformClient } from "./platform-client.ts";

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
