// The COPY step of a build: the body is a tar archive, the query says what of it is placed where. Only the platform may call it.

import { asError, isOutOfSpace } from "@skerry/base";
import { findUser, UnknownUserError } from "../../accounts/accounts.ts";
import { ArchiveError, PlacementError } from "../../copy/errors.ts";
import { placeArchive } from "../../copy/place-archive.ts";
import { type Exchange, HttpError, sendJson, single } from "../exchange.ts";

export async function copy({ req, res, query }: Exchange): Promise<void> {
  const [source, destination, user] = [required(query, "source"), required(query, "destination"), required(query, "user")];
  const [workdir, owner, mode] = [single(query, "workdir") ?? "", single(query, "owner") ?? "", single(query, "mode") ?? ""];
  if ([source, destination, workdir].some((path) => path.includes("\0"))) throw new HttpError(400, "a path can't contain a NUL character");
  // Not ended when the archive is refused: the rest of the request has to be read, or its sender would see a broken connection.
  const pieces = req.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  const archive = { [Symbol.asyncIterator]: () => ({ next: () => pieces.next() }) };
  try {
    const folder = workdir !== "" || destination.startsWith("/") ? workdir : homeOf(user);
    sendJson(res, await placeArchive({ archive, source, destination, workdir: folder, user, owner, mode }));
  } catch (error) {
    void drain(pieces);
    throw asHttpError(error);
  }
}

async function drain(pieces: AsyncIterator<Buffer>): Promise<void> {
  // A sender that goes away meanwhile has no use for the answer.
  for (let isDone = false; !isDone; ) isDone = (await pieces.next().catch(() => ({ done: true }))).done === true;
}

function required(query: URLSearchParams, name: string): string {
  const value = single(query, name);
  if (value === undefined) throw new HttpError(400, `the parameter ${name} is missing`);
  return value;
}

function homeOf(name: string): string {
  try {
    return findUser(name).home;
  } catch (error) {
    if (error instanceof UnknownUserError) throw new PlacementError(`invalid username: '${name}'`);
    throw error;
  }
}

/** The messages are for the caller of the build. Their beginnings are those of the hosted builder. */
function asHttpError(error: unknown): HttpError {
  if (error instanceof ArchiveError) return new HttpError(400, `failed to extract files: ${error.message}`);
  if (error instanceof PlacementError) return new HttpError(400, `failed to move files in sandbox: ${error.message}`);
  if (isOutOfSpace(error)) return new HttpError(507, "failed to extract files: not enough disk space available");
  return new HttpError(500, `failed to extract files: ${asError(error).message}`);
}
