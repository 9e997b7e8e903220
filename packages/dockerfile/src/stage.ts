import type { DockerfileStep } from "./dockerfile-build.ts";
import type { DockerfileProblem } from "./dockerfile-error.ts";
import { InstructionError } from "./dockerfile-error.ts";
import { expandWord } from "./expand-word.ts";
import type { Instruction } from "./read-instructions.ts";
import { quoteWords } from "./shell-quote.ts";
import { Variables } from "./variables.ts";
import { readJsonForm } from "./words.ts";

/** What CMD or ENTRYPOINT says: words of a program, or a line for the shell. */
export type ProgramForm = { readonly words: readonly string[] } | { readonly shellLine: string };

/** What the instructions after FROM have said so far. */
export class Stage {
  readonly variables = new Variables();
  readonly steps: DockerfileStep[] = [];
  readonly notices: DockerfileProblem[] = [];
  readonly escapeChar: string;
  /** The program and the options that run a line; undefined is the default shell. */
  shell: readonly string[] | undefined;
  entrypoint: ProgramForm | undefined;
  command: ProgramForm | undefined;
  user = "root";

  constructor(escapeChar: string) {
    this.escapeChar = escapeChar;
  }

  add(type: DockerfileStep["type"], args: readonly string[], line: number): void {
    this.steps.push({ type, args, line, isAdd: false });
  }

  notice(line: number, message: string): void {
    this.notices.push({ line, message });
  }

  expand(text: string): string {
    return expandWord(text, this.variables, { escapeChar: this.escapeChar });
  }

  /** A command line for bash that runs the line in the shell of the Dockerfile. */
  shellCommand(line: string): string {
    return this.shell === undefined ? line : quoteWords([...this.shell, line]);
  }
}

/** CMD, ENTRYPOINT and RUN have a JSON form, which runs a program without a shell. */
export function readProgram(instruction: Instruction, stage: Stage): ProgramForm {
  const { text, keyword, line } = instruction;
  const words = readJsonForm(text);
  if (words !== undefined) return { words };
  if (text === "") throw new InstructionError(`${keyword} says nothing to run. Add a command, or remove the line.`);
  if (/^\[\s*['"].*\]$/.test(text)) {
    stage.notice(
      line,
      `${keyword} looks like the JSON form but is no valid JSON, so a shell runs it. JSON takes double quotes: ["program", "argument"].`,
    );
  }
  return { shellLine: text };
}

/** Refuses every flag but the ones that the caller reads. */
export function refuseFlags(instruction: Instruction, known: readonly string[]): void {
  for (const { name } of instruction.flags) {
    if (!known.includes(name)) throw new InstructionError(flagMessage(instruction.keyword, name));
  }
}

const FLAG_MENDS: Readonly<Record<string, string>> = {
  "RUN mount": "Remove it: a cache mount is not needed, because each step is cached. Copy files with COPY, and pass no secrets to a build.",
  "RUN network": "Remove it: every step has the network of the template's team.",
  "RUN security": "Remove it: every step runs in a sandbox of its own.",
  "COPY from": "Multi-stage builds are not supported: build that stage as an image of its own, or install what it makes with a RUN.",
  "COPY parents": "Name the destination of each directory instead.",
  "COPY exclude": "List the files in .dockerignore instead.",
  "ADD checksum": "Download the file with a RUN, and check it with sha256sum.",
  "ADD keep-git-dir": "Clone the repository with a RUN.",
};

function flagMessage(keyword: string, name: string): string {
  const mend = FLAG_MENDS[`${keyword} ${name}`] ?? "Remove it.";
  return `${keyword} --${name} is not supported. ${mend}`;
}
