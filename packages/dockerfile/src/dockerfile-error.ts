/** Something that a Dockerfile says and that cannot be built, in words for its author: what is wrong, and how to mend it. */
export interface DockerfileProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

/** A Dockerfile that cannot be built. `problems` is never empty, and is in the order of the lines. */
export class DockerfileError extends Error {
  override readonly name = "DockerfileError";
  readonly problems: readonly DockerfileProblem[];

  constructor(problems: readonly DockerfileProblem[]) {
    super(problems.map(({ line, message }) => `line ${line}: ${message}`).join("\n"));
    this.problems = problems;
  }
}

/** What is wrong with the instruction that is being read. The parser adds the line, and reads on to find the other problems. */
export class InstructionError extends Error {
  override readonly name = "InstructionError";
}
