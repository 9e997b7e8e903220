import type { BuildHost } from "@skerry/builder";
import type { NodeConfig } from "../config.ts";
import type { BuildResultInit, BuildWork } from "./builds.ts";

export function buildRunner(_config: NodeConfig, _host: BuildHost): (work: BuildWork) => Promise<BuildResultInit> {
  return () => Promise.reject(new Error("this node builds no templates"));
}
