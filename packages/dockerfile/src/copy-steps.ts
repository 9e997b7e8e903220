// COPY and ADD. Each source becomes a step. The content of a heredoc is written by a command, so it needs no upload.

import { posix } from "node:path";
import { InstructionError } from "./dockerfile-error.ts";
import { expandWord } from "./expand-word.ts";
import { type Heredoc, heredocText, readHeredocWord } from "./heredoc.ts";
import type { Instruction } from "./read-instructions.ts";
import { assertCommandFits } from "./run-step.ts";
import { quoteWord } from "./shell-quote.ts";
import { refuseFlags, type Stage } from "./stage.ts";
import { plainText, shellText, stepText } from "./variables.ts";
import { readJsonForm, splitAtSpaces } from "./words.ts";

interface CopyTarget {
  readonly destination: string;
  readonly owner: string;
  readonly mode: string;
  readonly line: number;
  readonly isAdd: boolean;
}

export function copyInstruction(instruction: Instruction, stage: Stage): void {
  const { keyword, text, heredocs, line } = instruction;
  refuseFlags(instruction, ["chown", "chmod", "link"]);
  const words = readJsonForm(text) ?? splitAtSpaces(text);
  const destination = words.at(-1);
  if (words.length < 2 || destination === undefined) {
    throw new InstructionError(`${keyword} takes at least one source and a destination. Write: ${keyword} SOURCE DESTINATION`);
  }
  const sources = words.slice(0, -1);
  const target: CopyTarget = {
    destination: directoryOf(stage.expand(destination), sources.length),
    owner: ownerOf(instruction, stage),
    mode: modeOf(instruction, stage),
    line,
    isAdd: keyword === "ADD",
  };
  if (target.destination === "") throw new InstructionError(`The destination of ${keyword} is empty: "${destination}" has no value.`);
  for (const source of sources) {
    const heredoc = heredocs.find((candidate) => candidate.word === source);
    if (heredoc === undefined) copySource(source, target, stage);
    else writeHeredoc(heredoc, { ...target, isDirectory: target.destination.endsWith("/") }, stage);
  }
}

/** Several sources go into a directory, also when the destination does not say so with a slash. */
function directoryOf(destination: string, sources: number): string {
  return sources > 1 && destination !== "" && !destination.endsWith("/") ? `${destination}/` : destination;
}

function copySource(source: string, target: CopyTarget, stage: Stage): void {
  const path = contextPath(source, target, stage);
  // Docker's files belong to root unless --chown says otherwise. Without an owner the builder takes the user of the context.
  const owner = target.owner === "" && stage.user !== "root" ? "root:root" : target.owner;
  const args = [path, stepText(target.destination), owner, target.mode];
  stage.steps.push({ type: "COPY", args, line: target.line, isAdd: target.isAdd });
}

/** The source as a path inside the build directory, whose root is "/" for Docker. */
function contextPath(source: string, target: CopyTarget, stage: Stage): string {
  const keyword = target.isAdd ? "ADD" : "COPY";
  if (readHeredocWord(source) !== undefined)
    throw new InstructionError(`The heredoc ${source} is read as a path. Use a name without spaces.`);
  const expanded = stage.expand(source);
  const path = plainText(expanded);
  if (target.isAdd && /^(https?|ftp|git|ssh):\/\/|^git@/i.test(path)) {
    throw new InstructionError("ADD of a URL is not supported. Download it with a RUN: RUN curl -fsSL -o FILE URL");
  }
  if (expanded.includes("${")) {
    throw new InstructionError(`The source "${source}" has a variable that the Dockerfile does not set. Set it with ARG or ENV.`);
  }
  if (path === "") throw new InstructionError(`A source of ${keyword} is empty: "${source}" has no value.`);
  const relative = path.replace(/^\/+/, "");
  if (posix.normalize(relative).split("/")[0] === "..") {
    throw new InstructionError(`"${path}" is outside of the build directory. Build in a directory that contains it.`);
  }
  return relative === "" ? "." : relative;
}

function flagValue(instruction: Instruction, name: string): string {
  const flag = instruction.flags.findLast((candidate) => candidate.name === name);
  if (flag === undefined) return "";
  if (flag.value === undefined || flag.value === "") {
    throw new InstructionError(`${instruction.keyword} --${name} needs a value. Write: --${name}=VALUE`);
  }
  return flag.value;
}

function ownerOf(instruction: Instruction, stage: Stage): string {
  const owner = stepText(stage.expand(flagValue(instruction, "chown")));
  if (/^$|^[^\s:]+(:[^\s:]+)?$/.test(owner)) return owner;
  throw new InstructionError(`--chown takes a user, or a user and a group as user:group, not "${owner}".`);
}

function modeOf(instruction: Instruction, stage: Stage): string {
  const mode = plainText(stage.expand(flagValue(instruction, "chmod")));
  if (mode === "") return "";
  if (/^[0-7]{1,5}$/.test(mode)) return mode.replace(/^0+(?=.)/, "").padStart(4, "0");
  throw new InstructionError(`--chmod takes an octal mode such as 755, not "${mode}".`);
}

/** Writes the document as root, as Docker does: into the destination when it is a directory, else as the destination. */
function writeHeredoc(heredoc: Heredoc, target: CopyTarget & { readonly isDirectory: boolean }, stage: Stage): void {
  const written = heredocText(heredoc);
  const content = heredoc.expands
    ? shellText(expandWord(written, stage.variables, { escapeChar: stage.escapeChar, keepsQuotes: true }))
    : quoteWord(written);
  const name = quoteWord(heredoc.name);
  const path = shellText(target.destination);
  const commands = [
    target.isDirectory ? `f=${path}${name}` : `f=${path}; if [ -d "$f" ]; then f="$f"/${name}; fi`,
    `mkdir -p -- "$(dirname -- "$f")" && printf %s ${content} > "$f" && chmod ${target.mode || "0644"} -- "$f"`,
  ];
  const owner = target.owner === "" ? "" : ` && chown ${quoteWord(target.owner)} -- "$f"`;
  const command = `${commands.join("; ")}${owner}`;
  assertCommandFits(command);
  stage.add("RUN", [command, "root"], target.line);
}
