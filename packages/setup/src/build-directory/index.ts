// The build directory of a Dockerfile: its steps, and the files that they copy.

export { BuildDirectory } from "./build-directory.ts";
export { hashFiles, writeArchive } from "./copy-archive.ts";
export { type CopyFiles, findCopyFiles } from "./copy-files.ts";
export { type PreparedStep, prepareSteps, type WireStep } from "./prepare-steps.ts";
export { type DockerfileRead, readBuildArgs, readDockerfile } from "./read-dockerfile.ts";
