// Where the links of builds lead. This is no operation of the API: the body is no JSON and has no limit of 16 MiB, and clients send nothing
// but the body and its length.

import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { type BuildUploads, UPLOAD_PATH } from "../builds/uploads.ts";
import { publicError, validationError } from "../errors.ts";

/** Marks the route whose bodies may take longer than the request timeout. */
export const UNHURRIED = { isUnhurried: true };

export async function registerUploads(app: FastifyInstance, uploads: BuildUploads, options: { readonly idleMs: number }): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // The handler reads the body. Its content type means nothing, and may be malformed.
    scope.addHook("onRequest", async ({ raw }) => {
      delete raw.headers["content-type"];
    });
    scope.addContentTypeParser("*", (_request, _body, done) => done(null));
    scope.put(UPLOAD_PATH, { config: UNHURRIED, bodyLimit: uploads.maxBytes }, async (request, reply) => {
      const permit = uploads.admit(request.query as Record<string, unknown>);
      const length = lengthOf(request.headers["content-length"], uploads.maxBytes);
      await uploads.receive({ permit, bytes: piecesOf(request.raw, { length, idleMs: options.idleMs }) });
      return await reply.code(200).send();
    });
    scope.route({
      method: ["GET", "HEAD", "POST", "PATCH", "DELETE"],
      url: UPLOAD_PATH,
      handler: (_request, reply) => reply.code(405).header("Allow", "PUT").send({ code: 405, message: "the upload link takes PUT" }),
    });
  });
}

function lengthOf(header: string | undefined, maxBytes: number): number {
  if (header === undefined) throw validationError("header Content-Length is required");
  const length = Number(header);
  if (length > maxBytes) throw publicError("payload_too_large", `an upload may have at most ${Math.floor(maxBytes / 1024 ** 2)} MiB`);
  return length;
}

/** The body as it arrives. Throws when it ends early, or pauses for too long. */
async function* piecesOf(request: IncomingMessage, { length, idleMs }: { length: number; idleMs: number }): AsyncGenerator<Uint8Array> {
  let received = 0;
  request.setTimeout(idleMs, () => request.destroy(new Error("the upload stopped")));
  try {
    for await (const piece of request as AsyncIterable<Uint8Array>) {
      received += piece.length;
      yield piece;
    }
  } finally {
    request.setTimeout(0);
  }
  if (received !== length) throw validationError("the body is shorter than its Content-Length");
}
