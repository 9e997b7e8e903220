/** A step of a build, as clients send it. */
export interface DockerfileStep {
  readonly type: "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER";
  readonly args: readonly string[];
  /** Where the instruction begins, from 1. */
  readonly line: number;
}

/** What a Dockerfile says. */
export interface DockerfileBuild {
  readonly fromImage: string;
  readonly steps: readonly DockerfileStep[];
  /** "" when there is neither ENTRYPOINT nor CMD. */
  readonly startCommand: string;
}
