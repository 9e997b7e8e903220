// The files of volumes, for holders of a volume's token. The node of the volume does the work: this module finds it, and passes streams on.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { PlatformError } from "@skerry/base";
import type { OwnedVolume, Team, VolumeRepository } from "@skerry/store";
import type { VolumeEntry, WriteVolumeFileRequestSchema } from "@skerry/wire/node";
import { publicError } from "../errors.ts";
import type { NodeHandle } from "../nodes/directory.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { volumeErrorFrom } from "../nodes/volume-error.ts";
import { assertStanding } from "../teams/standing.ts";
import type { VolumeTokens } from "./volume-tokens.ts";

/** The owner and the mode of an entry. Absent: what the node chooses. */
export interface EntryMetadata {
  readonly uid?: number;
  readonly gid?: number;
  readonly mode?: number;
}

export interface VolumeContentDeps {
  readonly volumes: VolumeRepository;
  readonly nodes: Nodes;
  readonly tokens: VolumeTokens;
  readonly timeoutMs: number;
}

/** A file that is being read. */
export interface OpenFile {
  /** Of the whole file. */
  readonly size: number;
  readonly modifiedMs: number;
  /** Ends early, with an error, when the file becomes shorter meanwhile. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** A part of a file; `end` is one past its last byte. */
export interface FilePart {
  readonly start: number;
  readonly end: number;
}

export class VolumeContent {
  readonly #deps: VolumeContentDeps;
  constructor(deps: VolumeContentDeps) {
    this.#deps = deps;
  }

  /** Admits a request with a volume's token. Throws when the token, or the standing of the team, does not allow it. */
  async admit(token: string | undefined, volumeId: string, { writes, deletes }: { writes: boolean; deletes: boolean }): Promise<Content> {
    if (token === undefined) throw publicError("unauthenticated", "authorization header is missing");
    const access = this.#deps.tokens.check(token, volumeId);
    const volume = await this.#deps.volumes.findOwned(volumeId);
    if (!volume) throw publicError("not_found", "Volume not found", { detailCode: "volume_not_found" });
    assertStanding(volume.team, !writes || deletes);
    if (writes && access !== "write") throw publicError("forbidden", "The volume token only reads");
    return new Content(volume, { node: () => this.#nodeOf(volume), timeoutMs: this.#deps.timeoutMs });
  }

  #nodeOf(volume: OwnedVolume): NodeHandle {
    try {
      return this.#deps.nodes.get(volume.nodeId);
    } catch (error) {
      throw publicError("node_unreachable", "The host of the volume cannot be reached. Try again later", { cause: error });
    }
  }
}

/** The files of one volume. Paths are the caller's; the node keeps them inside of the volume. */
export class Content {
  readonly #volumeId: string;
  readonly #node: () => NodeHandle;
  readonly #timeoutMs: number;
  readonly team: Team;
  constructor(volume: OwnedVolume, about: { readonly node: () => NodeHandle; readonly timeoutMs: number }) {
    this.#volumeId = volume.id;
    this.team = volume.team;
    this.#node = about.node;
    this.#timeoutMs = about.timeoutMs;
  }

  async stat(path: string): Promise<VolumeEntry> {
    return await this.#entry(this.#client.statVolumeEntry(this.#at(path), this.#limit), { missingParent: true });
  }

  /** What is in a directory, down to `depth`, in batches. Throws before the first one when there is no such directory. */
  async list(path: string, depth: number, signal: AbortSignal): Promise<AsyncIterable<readonly VolumeEntry[]>> {
    const batches = this.#client.listVolumeDirectory({ ...this.#at(path), depth }, { signal })[Symbol.asyncIterator]();
    const first = await translated(batches.next());
    return (async function* () {
      try {
        for (let next = first; !next.done; next = await translated(batches.next())) yield next.value.entries;
      } finally {
        await batches.return?.();
      }
    })();
  }

  async makeDirectory(path: string, about: { readonly metadata: EntryMetadata; readonly force: boolean }): Promise<VolumeEntry> {
    return await this.#entry(this.#client.makeVolumeDirectory({ ...this.#at(path), ...about }, this.#limit));
  }

  async setMetadata(path: string, metadata: EntryMetadata): Promise<VolumeEntry> {
    return await this.#entry(this.#client.setVolumeEntry({ ...this.#at(path), metadata }, this.#limit), { missingParent: true });
  }

  async remove(path: string): Promise<void> {
    // Clients know this answer for the root.
    if (/^[/.]*$/.test(path) && !path.includes("..")) throw missing(path);
    await translated(this.#client.removeVolumeEntry(this.#at(path), this.#limit), { missingParent: true });
  }

  /** Opens a file. `choose` gets its size, and answers with the part to read; undefined: nothing is read. */
  async read(
    path: string,
    choose: (size: number) => FilePart | undefined,
    signal: AbortSignal,
  ): Promise<OpenFile & { part: FilePart | undefined }> {
    let about = await this.#open(path, { start: 0, end: 0 }, signal);
    const part = choose(about.size);
    if (part && part.end > part.start) {
      const { size } = about;
      about = await this.#open(path, part, signal);
      // A file that was replaced in between is read with its own size.
      if (about.size !== size) return await this.read(path, choose, signal);
    }
    return { ...about, part };
  }

  /** Writes a file. Nothing is kept when `bytes` fails. */
  async write(
    path: string,
    about: { readonly metadata: EntryMetadata; readonly force: boolean },
    { bytes, signal }: { readonly bytes: AsyncIterable<Uint8Array>; readonly signal: AbortSignal },
  ): Promise<VolumeEntry> {
    const head = { ...this.#at(path), ...about };
    let cause: unknown;
    async function* parts(): AsyncGenerator<MessageInitShape<typeof WriteVolumeFileRequestSchema>> {
      yield { part: { case: "head", value: head } };
      try {
        for await (const piece of bytes) yield { part: { case: "data", value: piece } };
      } catch (error) {
        cause = error;
        throw error;
      }
      yield { part: { case: "end", value: {} } };
    }
    try {
      return await this.#entry(this.#client.writeVolumeFile(parts(), { signal }));
    } catch (error) {
      throw cause instanceof PlatformError ? cause : error;
    }
  }

  get #client(): NodeHandle["client"] {
    return this.#node().client;
  }

  get #limit(): { readonly timeoutMs: number } {
    return { timeoutMs: this.#timeoutMs };
  }

  #at(path: string) {
    return { volumeId: this.#volumeId, path };
  }

  async #entry(call: Promise<{ entry?: VolumeEntry | undefined }>, about: Translation = {}): Promise<VolumeEntry> {
    const { entry } = await translated(call, about);
    if (!entry) throw new PlatformError("internal", "the node answered without an entry");
    return entry;
  }

  async #open(path: string, { start, end }: FilePart, signal: AbortSignal): Promise<OpenFile> {
    const wanted = end - start;
    const request = { ...this.#at(path), offset: BigInt(start), length: BigInt(wanted) };
    const parts = this.#client.readVolumeFile(request, { signal })[Symbol.asyncIterator]();
    const first = await translated(parts.next(), { missingParent: true });
    const head = first.value?.part;
    if (head?.case !== "entry") throw new PlatformError("internal", "the node answered without an entry");
    const bytes = (async function* () {
      try {
        let left = wanted;
        while (left > 0) {
          const next = await translated(parts.next());
          if (next.done) throw new PlatformError("internal", "the file became shorter while it was read");
          if (next.value.part.case !== "data") continue;
          const piece = next.value.part.value.subarray(0, left);
          left -= piece.length;
          yield piece;
        }
      } finally {
        await parts.return?.();
      }
    })();
    if (wanted === 0) await bytes.next();
    return { size: Number(head.value.size), modifiedMs: head.value.mtimeMs, bytes };
  }
}

interface Translation {
  /** A file in the place of a parent directory means that there is no such path. */
  readonly missingParent?: boolean;
}

async function translated<T>(call: Promise<T>, { missingParent = false }: Translation = {}): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const failure = volumeErrorFrom(error);
    if (missingParent && failure.detailCode === "not_a_directory") throw missing("", failure);
    throw failure;
  }
}

function missing(path: string, cause?: PlatformError): PlatformError {
  return publicError("not_found", cause?.publicMessage ?? `Path '${path}' not found`, { detailCode: "path_not_found", cause });
}
