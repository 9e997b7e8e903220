// Reads a Dockerfile as the steps of a template build. It finds all problems of the file, each with its line, before anything is built.

import { copyInstruction } from "./copy-steps.ts";
import type { DockerfileBuild } from "./dockerfile-build.ts";
import { DockerfileError, type DockerfileProblem, InstructionError } from "./dockerfile-error.ts";
import { expandWord } from "./expand-word.ts";
import { MAX_PROBLEMS, MAX_TEXT_LENGTH } from "./limits.ts";
import { type Instruction, readInstructions } from "./read-instructions.ts";
import { runInstruction } from "./run-step.ts";
import {
  argInstruction,
  type BuildArgs,
  envInstruction,
  readArgs,
  shellInstruction,
  userInstruction,
  workdirInstruction,
} from "./settings.ts";
import { refuseFlags, Stage } from "./stage.ts";
import { startCommand, startInstruction } from "./start-command.ts";
import { LITERAL_DOLLAR, plainText, Variables } from "./variables.ts";
import { splitAtSpaces } from "./words.ts";

export interface DockerfileOptions {
  /** Values for the ARGs of the Dockerfile. */
  readonly buildArgs?: Readonly<Record<string, string>>;
}

/** Throws DockerfileError, and nothing else. */
export function parseDockerfile(text: string, options: DockerfileOptions = {}): DockerfileBuild {
  assertReadable(text);
  for (const value of Object.values(options.buildArgs ?? {})) {
    if (value.includes("\0")) throw new DockerfileError([{ line: 1, message: "A build argument contains a NUL character. Remove it." }]);
  }
  return new DockerfileParser(text, options.buildArgs ?? {}).parse();
}

function assertReadable(text: string): void {
  if (text.length > MAX_TEXT_LENGTH) {
    throw new DockerfileError([{ line: 1, message: `A Dockerfile can have ${MAX_TEXT_LENGTH} characters at most.` }]);
  }
  const nul = text.indexOf("\0");
  if (nul === -1) return;
  const line = text.slice(0, nul).split("\n").length;
  throw new DockerfileError([{ line, message: "There is a NUL character. Save the Dockerfile as text in UTF-8." }]);
}

/** Instructions that say something about containers that a sandbox does not have. */
const SILENT = new Set(["EXPOSE", "VOLUME", "LABEL", "MAINTAINER", "STOPSIGNAL"]);
const IGNORED: Readonly<Record<string, string | undefined>> = {
  HEALTHCHECK: "HEALTHCHECK is left out: sandboxes have no health checks. A ready command says when a template is ready.",
  ONBUILD: "ONBUILD is left out: a template passes no instructions on to the ones that are built from it.",
};
const READERS: Readonly<Record<string, (instruction: Instruction, stage: Stage, args: BuildArgs) => void>> = {
  RUN: runInstruction,
  COPY: copyInstruction,
  ADD: copyInstruction,
  ENV: envInstruction,
  ARG: argInstruction,
  WORKDIR: workdirInstruction,
  USER: userInstruction,
  SHELL: shellInstruction,
  CMD: startInstruction,
  ENTRYPOINT: startInstruction,
};
const KEYWORDS = ["FROM", ...Object.keys(READERS)];

/** What BuildKit defines without an ARG in FROM lines, and for an ARG without a value. */
const PLATFORM_ARGS = Object.entries({
  TARGETPLATFORM: "linux/amd64",
  TARGETOS: "linux",
  TARGETARCH: "amd64",
  TARGETVARIANT: "",
  BUILDPLATFORM: "linux/amd64",
  BUILDOS: "linux",
  BUILDARCH: "amd64",
  BUILDVARIANT: "",
});

class DockerfileParser {
  private readonly instructions: readonly Instruction[];
  private readonly problems: DockerfileProblem[];
  private readonly stage: Stage;
  private readonly args: BuildArgs;
  private fromImage: string | undefined;
  private stages = 0;

  constructor(text: string, buildArgs: Readonly<Record<string, string>>) {
    const { instructions, problems, escapeChar } = readInstructions(text);
    this.instructions = instructions;
    this.problems = [...problems];
    this.stage = new Stage(escapeChar);
    const given = Object.fromEntries(Object.entries(buildArgs).map(([name, value]) => [name, value.replaceAll("$", LITERAL_DOLLAR)]));
    this.args = { given, global: new Variables(), used: new Set() };
    for (const [name, value] of PLATFORM_ARGS) this.args.global.setArg(name, value);
  }

  parse(): DockerfileBuild {
    for (const instruction of this.instructions) {
      try {
        this.read(instruction);
      } catch (error) {
        if (!(error instanceof InstructionError)) throw error;
        this.problems.push({ line: instruction.line, message: error.message });
      }
      if (this.stages > 1) break;
    }
    if (this.fromImage === undefined && this.stages === 0) {
      this.problems.push({ line: 1, message: "There is no FROM. Begin with the image to build on, such as: FROM debian:13" });
    }
    if (this.problems.length > 0) {
      throw new DockerfileError(this.problems.toSorted((one, other) => one.line - other.line).slice(0, MAX_PROBLEMS));
    }
    this.addDefaults();
    this.noticeUnusedArgs();
    const { steps, notices } = this.stage;
    return { fromImage: this.fromImage ?? "", steps, startCommand: startCommand(this.stage), notices };
  }

  private read(instruction: Instruction): void {
    const { keyword } = instruction;
    if (keyword === "FROM") this.readFrom(instruction);
    else if (this.stages > 0 || !isKnown(keyword)) this.readInStage(instruction);
    else if (keyword === "ARG") this.readGlobalArgs(instruction);
    else throw new InstructionError(`${keyword} comes before FROM. Only ARG may.`);
  }

  private readInStage(instruction: Instruction): void {
    const { keyword, line } = instruction;
    const ignored = Object.hasOwn(IGNORED, keyword) ? IGNORED[keyword] : undefined;
    if (SILENT.has(keyword)) return;
    if (ignored !== undefined) this.stage.notice(line, ignored);
    else if (Object.hasOwn(READERS, keyword)) READERS[keyword]?.(instruction, this.stage, this.args);
    else throw new InstructionError(`"${keyword.slice(0, 50)}" is no instruction of a Dockerfile.${hint(instruction)}`);
  }

  private readGlobalArgs(instruction: Instruction): void {
    const { global } = this.args;
    const pairs = readArgs(instruction, { ...this.args, variables: global, escapeChar: this.stage.escapeChar });
    for (const [name, value] of pairs) global.setArg(name, value);
  }

  private readFrom(instruction: Instruction): void {
    this.stages++;
    if (this.stages > 1) {
      throw new InstructionError(
        "Multi-stage Dockerfiles are not supported: a second FROM begins here. Build the first stage as an image or a template of its own.",
      );
    }
    const expand = (word: string) =>
      plainText(
        expandWord(word, this.args.global, {
          escapeChar: this.stage.escapeChar,
          onUnknown: (name) => {
            throw new InstructionError(`FROM uses ${name}, which no ARG before FROM declares. Add a line before it: ARG ${name}=VALUE`);
          },
        }),
      );
    refuseFlags(instruction, ["platform"]);
    for (const { value = "" } of instruction.flags) assertPlatform(expand(value));
    const words = splitAtSpaces(instruction.text);
    const [image = "", as, name] = words;
    if (image === "" || (words.length !== 1 && !(words.length === 3 && as?.toUpperCase() === "AS" && name !== undefined))) {
      throw new InstructionError("FROM takes an image, and a name for the stage if you like. Write: FROM IMAGE");
    }
    this.fromImage = expand(image);
    if (this.fromImage === "") throw new InstructionError(`FROM ${image} names no image: its ARG has no value. Give it with --build-arg.`);
    this.stage.add("USER", ["root"], instruction.line);
    this.stage.add("WORKDIR", ["/"], instruction.line);
  }

  /** A Dockerfile that sets no user or no directory gets the ones of a sandbox. */
  private addDefaults(): void {
    const line = this.instructions.at(-1)?.line ?? 1;
    const has = (type: string) => this.stage.steps.slice(2).some((step) => step.type === type);
    const adds = { user: !has("USER"), workdir: !has("WORKDIR") };
    if (adds.user) this.stage.add("USER", ["user"], line);
    if (adds.workdir) this.stage.add("WORKDIR", ["/home/user"], line);
  }

  private noticeUnusedArgs(): void {
    const unused = Object.keys(this.args.given).filter((name) => !this.args.used.has(name));
    for (const name of unused) this.stage.notice(1, `No ARG takes the build argument ${name.slice(0, 100)}.`);
  }
}

function assertPlatform(platform: string): void {
  if (["linux/amd64", "linux/x86_64", "amd64"].includes(platform)) return;
  throw new InstructionError(`FROM --platform=${platform} is not supported: sandboxes run linux/amd64. Remove the flag.`);
}

function isKnown(keyword: string): boolean {
  return KEYWORDS.includes(keyword) || SILENT.has(keyword) || Object.hasOwn(IGNORED, keyword);
}

/** What the author may have meant. */
function hint({ keyword }: Instruction): string {
  const meant = KEYWORDS.find(
    (known) => known.startsWith(keyword) || keyword.startsWith(known) || sortedLetters(known) === sortedLetters(keyword),
  );
  return meant === undefined
    ? " A command needs RUN before it, and a line that goes on needs a backslash at the end of the one before."
    : ` Did you mean ${meant}?`;
}

function sortedLetters(word: string): string {
  return word.slice(0, 50).split("").sort().join("");
}
