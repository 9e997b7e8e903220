// Concatenates files into one. The agent writes the data to a temporary file beside the destination, and then renames it over the
// destination. Until then neither the old destination nor a source changes.

import { constants } from "node:fs";
import { type FileHandle, lstat, open, rename, rm, stat } from "node:fs/promises";
import { posix } from "node:path";
import { asError, errnoOf, isOutOfSpace } from "@skerry/base";
import type { User } from "../../accounts/accounts.ts";
import { kernelRandomUuid } from "../../kernel-random.ts";
import type { AgentState } from "../../state.ts";
import { type Exchange, HttpError, sendJson } from "../exchange.ts";
import { readBody } from "../read-body.ts";
import { type ComposeRequest, parseComposeRequest } from "./compose-request.ts";
import { filePath, fileUser, makeParents } from "./file-request.ts";

/** Limit on the body, a list of paths that is held in memory. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Size of one read: each passes through another thread, which costs as much as copying a few hundred KiB. */
const COPY_BYTES = 1024 * 1024;

interface Source {
  readonly given: string;
  readonly path: string;
}

export async function compose({ req, res, state }: Exchange): Promise<void> {
  const request = parseComposeRequest(await readBody(req, MAX_BODY_BYTES));
  const user = fileUser(state, request.username);
  const destination = filePath(state, request.destination, user, "error resolving destination path");
  const sources = resolveSources({ state, user, request, destination });
  for (const source of sources) await assertRegular(source);
  await makeParents(destination, user);
  const temporary = `${destination}.e2b-compose.${kernelRandomUuid()}.tmp`;
  try {
    await writeTogether({ sources, temporary, user, isWanted: () => !res.destroyed });
    await rename(temporary, destination);
  } catch (error) {
    await rm(temporary, { force: true });
    throw asHttpError(error);
  }
  await removeSources(sources, destination);
  sendJson(res, { name: posix.basename(destination), path: destination, type: "file" });
}

interface Resolution {
  readonly state: AgentState;
  readonly user: User;
  readonly request: ComposeRequest;
  readonly destination: string;
}

function resolveSources({ state, user, request, destination }: Resolution): Source[] {
  return request.sourcePaths.map((given) => {
    const path = filePath(state, given, user, `error resolving source path "${given}"`);
    if (path === destination) throw new HttpError(400, `source path "${given}" cannot be the same as destination`);
    return { given, path };
  });
}

async function assertRegular({ given, path }: Source): Promise<void> {
  let isRegular: boolean;
  try {
    isRegular = (await stat(path)).isFile();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new HttpError(404, `source file not found: ${given}`);
    throw new HttpError(500, `error getting info of source file "${given}": ${asError(error).message}`);
  }
  if (!isRegular) throw new HttpError(400, `source path is not a regular file: ${given}`);
}

interface Copying {
  readonly sources: readonly Source[];
  readonly temporary: string;
  readonly user: User;
  /** Returns false once the client has disconnected. */
  readonly isWanted: () => boolean;
}

async function writeTogether({ sources, temporary, user, isWanted }: Copying): Promise<void> {
  await using target = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666);
  await target.chown(user.uid, user.gid);
  const buffer = Buffer.allocUnsafe(COPY_BYTES);
  for (const source of sources) await append({ source, target, buffer, isWanted });
}

interface Appending {
  readonly source: Source;
  readonly target: FileHandle;
  readonly buffer: Buffer;
  readonly isWanted: () => boolean;
}

async function append({ source, target, buffer, isWanted }: Appending): Promise<void> {
  // O_NONBLOCK: a file that was replaced by a FIFO after the check must not block a thread for ever.
  await using file = await open(source.path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (!(await file.stat()).isFile()) throw new HttpError(400, `source path is not a regular file: ${source.given}`);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return;
    for (let at = 0; at < bytesRead; ) at += (await target.write(buffer, at, bytesRead - at)).bytesWritten;
    if (!isWanted()) throw new HttpError(500, "the client disconnected");
  }
}

function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (isOutOfSpace(error)) return new HttpError(507, "not enough disk space available");
  return new HttpError(500, `error composing files: ${asError(error).message}`);
}

// Best effort, because the result already exists. Keeps a source that is the destination under another name.
async function removeSources(sources: readonly Source[], destination: string): Promise<void> {
  const made = await lstat(destination).catch(() => undefined);
  for (const { path } of sources) {
    const own = await lstat(path).catch(() => undefined);
    if (!own || (made && own.ino === made.ino && own.dev === made.dev)) continue;
    await rm(path, { force: true }).catch(() => {});
  }
}
