// How the node pulls images for builds: mirrors, certificates and credentials of the operator.

import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import type { ConfigReader } from "@skerry/base";
import type { NodeConfig } from "@skerry/node";

export interface ImagePullSettings {
  readonly registriesDir: string | undefined;
  readonly registryMirror: string | undefined;
  readonly maxImageMb: number;
  readonly ecrEndpoint: string | undefined;
}

export function readImagePullSettings(reader: ConfigReader): ImagePullSettings {
  const settings = {
    registriesDir: reader.optional("REGISTRIES_DIR"),
    registryMirror: reader.optional("REGISTRY_MIRROR"),
    maxImageMb: reader.integer("MAX_IMAGE_MB", 25_000, { min: 1, max: 1_048_576 }),
    ecrEndpoint: reader.optional("ECR_ENDPOINT"),
  };
  const { registriesDir: dir, registryMirror: mirror, ecrEndpoint: endpoint } = settings;
  if (dir !== undefined && !(isAbsolute(dir) && statSync(dir, { throwIfNoEntry: false })?.isDirectory())) {
    reader.problem(`SKERRY_REGISTRIES_DIR takes the absolute path of a directory like /etc/containers, not "${dir}"`);
  }
  if (mirror !== undefined && !/^[\w.-]+(:\d{1,5})?(\/[\w.-]+)*$/.test(mirror)) {
    reader.problem(`SKERRY_REGISTRY_MIRROR takes a host such as mirror.example:5000 or mirror.example/hub, not "${mirror}"`);
  }
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? "")) {
    reader.problem("SKERRY_ECR_ENDPOINT takes a URL such as https://api.ecr.eu-central-1.amazonaws.com");
  }
  return settings;
}

export function imagePullConfigOf(settings: ImagePullSettings): NonNullable<NodeConfig["images"]> {
  const { registriesDir, registryMirror, maxImageMb, ecrEndpoint } = settings;
  const registries = {
    ...(registriesDir !== undefined && { configDir: registriesDir }),
    ...(registryMirror !== undefined && { mirror: registryMirror }),
  };
  return { registries, maxImageMb, ...(ecrEndpoint !== undefined && { ecrEndpoint }) };
}
