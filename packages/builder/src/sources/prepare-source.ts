import type { BuildSpec } from "@skerry/wire/node";
import { BuildFailure } from "../build-failure.ts";
import { prepareTemplate } from "./prepare-template.ts";
import type { PreparedSource, SourceOptions } from "./source.ts";

export async function prepareSource(spec: BuildSpec, options: SourceOptions): Promise<PreparedSource> {
  const { source } = spec;
  if (source.case === "template") return await prepareTemplate(source.value, options);
  throw new BuildFailure("images are not built yet", { step: "base" });
}
