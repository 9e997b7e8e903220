import type { FastifyInstance, FastifyRequest } from "fastify";
import { validationError } from "../../errors.ts";

export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Accepts JSON bodies in valid UTF-8 only. An empty body counts as no body, whatever its content type. */
export function readJsonBodies(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, bytes: Buffer, done) => {
    if (bytes.length === 0) return done(null, undefined);
    let text: string;
    try {
      text = utf8.decode(bytes);
    } catch {
      return done(validationError("the body is not valid UTF-8"));
    }
    parseJson(request as FastifyRequest, text, (error, value) => {
      if (error) done(validationError("the body is not valid JSON"));
      else done(null, value);
    });
  });
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, bytes: Buffer, done) => {
    if (bytes.length === 0) done(null, undefined);
    else done(validationError("the content type of the body must be application/json"));
  });
}
