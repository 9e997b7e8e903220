export type { DockerfileBuild, DockerfileStep } from "./dockerfile-build.ts";
export { DockerfileError, type DockerfileProblem } from "./dockerfile-error.ts";
export { type DockerfileOptions, parseDockerfile } from "./parse-dockerfile.ts";
