// Files that clients upload for COPY steps. A client asks for a link and sends the archive there, without credentials: the link carries a
// signature for one hash of one team, and for half an hour. The hash is the client's own name for the files, and is not compared with them.
//
// Links name the API by the address that the client used (see http/input/origin.ts). The signature does not cover the address: a link is
// given only to its caller, and is worth the same at every address of this API.

import { createHmac } from "node:crypto";
import { type Clock, isOutOfSpace, isSameSecret, type Logger, type Secret } from "@skerry/base";
import type { BlobStore } from "@skerry/blobs";
import { parseBlobDigest } from "@skerry/blobs";
import type { BuildFileRepository, Team, TemplateRepository } from "@skerry/store";
import { DISK_FULL_MESSAGE } from "@skerry/wire";
import { invalid, publicError } from "../errors.ts";
import { TEMPLATE_ID } from "./build-service.ts";

export const UPLOAD_PATH = "/upload";

export interface UploadDeps {
  readonly templates: TemplateRepository;
  readonly buildFiles: BuildFileRepository;
  readonly blobs: BlobStore;
  readonly tokenSeed: Secret;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly linkMs: number;
  readonly maxBytes: number;
  /** Where clients reach this API, if that is configured. */
  readonly publicUrl: string | undefined;
}

export interface UploadLink {
  /** The team has files of this hash already. */
  readonly isPresent: boolean;
  readonly url: string;
}

/** What a link permits. */
export interface UploadPermit {
  readonly teamId: string;
  readonly hash: string;
}

export interface Upload {
  readonly permit: UploadPermit;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export class BuildUploads {
  readonly #deps: UploadDeps;
  constructor(deps: UploadDeps) {
    this.#deps = deps;
  }

  get maxBytes(): number {
    return this.#deps.maxBytes;
  }

  /** A link for files of a template. `origin`: the address that the caller used. */
  async link(
    teams: readonly Team[],
    about: { readonly templateId: string; readonly hash: string; readonly origin: string },
  ): Promise<UploadLink> {
    const { templates, buildFiles, blobs, clock, linkMs, publicUrl } = this.#deps;
    const { templateId, hash } = about;
    if (!/^[0-9a-f]{64}$/.test(hash)) throw invalid("Invalid files hash");
    const template = TEMPLATE_ID.test(templateId) ? await templates.findTemplate(templateId) : undefined;
    if (!template || !teams.some(({ id }) => id === template.teamId)) throw publicError("not_found", `Template '${templateId}' not found`);
    const { teamId } = template;
    const file = await buildFiles.find(teamId, hash);
    const isPresent = file !== undefined && (await blobs.size(parseBlobDigest(file.blob))) !== undefined;
    // The client may now rely on the files, and start the build much later.
    if (isPresent) await buildFiles.touch(teamId, [hash], clock.now());
    const path = `${teamId}/${hash}`;
    const expires = Math.floor((clock.now() + linkMs) / 1000);
    const query = new URLSearchParams({ path, expires: `${expires}`, token: this.#sign(path, expires) });
    return { isPresent, url: `${(publicUrl ?? about.origin).replace(/\/+$/, "")}${UPLOAD_PATH}?${query}` };
  }

  /** Reads the query of a link. Throws when it is malformed, expired, or not signed by this platform. */
  admit(query: Readonly<Record<string, unknown>>): UploadPermit {
    const { path, expires, token } = query;
    const parts = typeof path === "string" ? /^([0-9a-f-]{36})\/([0-9a-f]{64})$/.exec(path) : null;
    const isComplete = typeof expires === "string" && /^\d{1,12}$/.test(expires) && typeof token === "string";
    if (!parts || !isComplete) throw invalid("the upload link is not complete");
    const [, teamId = "", hash = ""] = parts;
    if (!isSameSecret(token, this.#sign(`${teamId}/${hash}`, Number(expires))))
      throw publicError("forbidden", "the upload link is not valid");
    if (Number(expires) * 1000 < this.#deps.clock.now()) throw publicError("forbidden", "the upload link has expired");
    return { teamId, hash };
  }

  /** Stores an upload. It appears at once and whole; a failure leaves nothing. */
  async receive({ permit, bytes }: Upload): Promise<void> {
    const { buildFiles, blobs, clock, logger } = this.#deps;
    const blob = await blobs.put(bytes).catch((error: unknown) => {
      throw isOutOfSpace(error) ? publicError("capacity_unavailable", DISK_FULL_MESSAGE, { cause: error }) : error;
    });
    const exists = async () => (await blobs.size(blob)) !== undefined;
    const sizeBytes = (await blobs.size(blob)) ?? 0;
    if (!(await buildFiles.put({ ...permit, blob, sizeBytes }, { now: clock.now(), exists }))) {
      throw publicError("capacity_unavailable", "the upload was lost; try again");
    }
    logger.info({ team_id: permit.teamId, files_hash: permit.hash, size_bytes: sizeBytes }, "files of a build uploaded");
  }

  #sign(path: string, expires: number): string {
    return createHmac("sha256", this.#deps.tokenSeed.reveal()).update(`upload:${path}:${expires}`).digest("hex");
  }
}
