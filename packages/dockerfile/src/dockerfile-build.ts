import type { DockerfileProblem } from "./dockerfile-error.ts";

/** A step of a build, as clients send it. */
export interface DockerfileStep {
  readonly type: "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER";
  /** RUN: command, and the user if it is not the one of the context. COPY: source, destination, owner or "", mode or "". ENV: name, value, … */
  readonly args: readonly string[];
  /** Where the instruction begins, from 1. */
  readonly line: number;
  /** COPY: whether the instruction is ADD, which unpacks archives of the build directory. */
  readonly isAdd: boolean;
}

/** What a Dockerfile says. */
export interface DockerfileBuild {
  readonly fromImage: string;
  readonly steps: readonly DockerfileStep[];
  /** "" when there is neither ENTRYPOINT nor CMD. */
  readonly startCommand: string;
  /** What a build leaves out, such as a HEALTHCHECK, in words for the author. The build works without it. */
  readonly notices: readonly DockerfileProblem[];
}
