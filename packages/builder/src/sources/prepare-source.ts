import type { BuildSpec } from "@skerry/wire/node";
import { BuildFailure } from "../build-failure.ts";
import { prepareImage } from "./prepare-image.privileged.ts";
import { prepareTemplate } from "./prepare-template.ts";
import type { PreparedSource, SourceOptions } from "./source.ts";

export async function prepareSource(spec: BuildSpec, options: SourceOptions): Promise<PreparedSource> {
  const { source } = spec;
  if (source.case === "template") return await prepareTemplate(source.value, options);
  if (source.case === "image") return await prepareImage(source.value, options);
  throw new BuildFailure("the build names neither an image nor a template", { step: "base" });
}
