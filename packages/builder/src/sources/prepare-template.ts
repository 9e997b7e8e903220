import { asError, PlatformError } from "@skerry/base";
import { type LayerDigest, parseLayerDigest } from "@skerry/layers";
import type { TemplateSource } from "@skerry/wire/node";
import { BuildFailure } from "../build-failure.ts";
import { keyOf } from "../keys.ts";
import type { PreparedSource, SourceOptions } from "./source.ts";

/** A build of another template. Its layers are never built anew, so it counts as cached. */
export async function prepareTemplate(source: TemplateSource, options: SourceOptions): Promise<PreparedSource> {
  const layers = await layersOf(source, options);
  const { workdir = "", env = {} } = source.context ?? {};
  const user = source.context?.user || "root";
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  const key = keyOf("template", layers, user, workdir, variables);
  options.log({ level: "info", step: "base", message: `CACHED [base] FROM TEMPLATE ${source.name} [${key}]` });
  return { layers, key, isCached: true, context: { user, workdir, env }, ...(source.start && { start: source.start }) };
}

async function layersOf(source: TemplateSource, { layers, holder, host, signal }: SourceOptions): Promise<readonly LayerDigest[]> {
  if (source.imageId !== "") return await host.layersOfImage(source.imageId, { holder, signal }).catch(unlessMissing);
  const digests = source.layers.map(parseLayerDigest);
  if (await layers.hold(holder, digests)) return digests;
  throw gone();
}

function unlessMissing(error: unknown): never {
  if (error instanceof PlatformError && error.code === "image_missing") throw gone(error);
  throw asError(error);
}

function gone(cause?: unknown): BuildFailure {
  return new BuildFailure("error getting base template, you may need to rebuild it first", { step: "base", cause });
}
