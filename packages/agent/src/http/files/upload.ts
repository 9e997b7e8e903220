import { metadataOf, metadataProblem } from "../../filesystem/metadata.ts";
import { parseMediaType } from "../../multipart/media-type.ts";
import { FramingError, readParts, TruncatedPartError } from "../../multipart/read-parts.ts";
import { type Exchange, HttpError, sendJson, single } from "../exchange.ts";
import { decodeBody } from "./decode-body.ts";
import { assertFileAccess, filePath, fileUser } from "./file-request.ts";
import { type UploadTarget, writeUpload } from "./write-upload.ts";

/** The response for each file. Clients compare it as a whole, so it has no other fields. */
interface UploadedFile {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly name: string;
  readonly path: string;
  readonly type: "file";
}

export async function upload(exchange: Exchange): Promise<void> {
  const { query, req, state } = exchange;
  assertFileAccess(exchange, "write");
  const body = await decodeBody(req);
  const user = fileUser(state, single(query, "username"));
  const metadata = metadataOf(req.rawHeaders);
  const problem = metadataProblem(metadata);
  if (problem !== undefined) throw new HttpError(400, problem);

  const contentLength = Number(req.headers["content-length"] ?? 0);
  const resolve = (path: string): UploadTarget => ({ path: filePath(state, path, user), owner: user, metadata, contentLength });
  const contentType = req.headers["content-type"] ?? "";
  const type = parseMediaType(contentType);
  const path = single(query, "path");
  if (type?.type === "application/octet-stream") {
    if (!path) throw new HttpError(400, "path query parameter is required for raw body upload");
    sendJson(exchange.res, [await write(resolve(path), body)]);
  } else if (type?.type.startsWith("multipart/")) {
    sendJson(exchange.res, await writeForm({ body, boundary: type.parameters.get("boundary"), path, resolve }));
  } else {
    throw new HttpError(400, `unsupported content type: ${contentType}, expected multipart/form-data or application/octet-stream`);
  }
}

interface Form {
  readonly body: AsyncIterable<Buffer>;
  readonly boundary: string | undefined;
  /** From the query. If set, it is the path of every file of the form. */
  readonly path: string | undefined;
  readonly resolve: (path: string) => UploadTarget;
}

async function writeForm(form: Form): Promise<UploadedFile[]> {
  if (!form.boundary) throw new HttpError(500, "error parsing multipart form: no multipart boundary param in Content-Type");
  const written: UploadedFile[] = [];
  try {
    for await (const part of readParts(form.body, form.boundary)) {
      if (part.parameters.get("name") !== "file") continue;
      const target = form.resolve(form.path ?? partName(part.parameters));
      refuseRepeated(target.path, written);
      written.push(await write(target, part.content));
    }
  } catch (error) {
    if (error instanceof FramingError || error instanceof TruncatedPartError)
      throw new HttpError(500, `error reading form: ${error.message}`);
    throw error;
  }
  return written;
}

function partName(parameters: ReadonlyMap<string, string>): string {
  const name = parameters.get("filename");
  if (name) return name;
  throw new HttpError(400, "error getting multipart custom part file name: filename not found in Content-Disposition header");
}

function refuseRepeated(path: string, written: readonly UploadedFile[]): void {
  if (!written.some((file) => file.path === path)) return;
  const others = written.map((file) => file.path).filter((other) => other !== path);
  const also = others.length === 0 ? "" : `, also the following files were uploaded: ${others.map((other) => `'${other}'`).join(", ")}`;
  const rule = `you cannot upload multiple files to the same path '${path}' in one upload request`;
  throw new HttpError(400, `${rule}, only the first specified file was uploaded${also}`);
}

async function write(target: UploadTarget, content: AsyncIterable<Buffer>): Promise<UploadedFile> {
  try {
    const metadata = await writeUpload(target, content);
    const name = target.path.slice(target.path.lastIndexOf("/") + 1);
    return { ...(Object.keys(metadata).length === 0 ? {} : { metadata }), name, path: target.path, type: "file" };
  } catch (error) {
    if (error instanceof TruncatedPartError) throw new HttpError(500, `error writing file: ${error.message}`);
    throw error;
  }
}
