// The instructions that set something for the ones after them: ENV, ARG, WORKDIR, USER, SHELL.

import { InstructionError } from "./dockerfile-error.ts";
import { expandWord } from "./expand-word.ts";
import type { Instruction } from "./read-instructions.ts";
import { refuseFlags, type Stage } from "./stage.ts";
import { plainText, stepText, type Variables } from "./variables.ts";
import { readJsonForm, splitWords } from "./words.ts";

export function envInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  // Every value sees the variables as they were before the instruction.
  const pairs = readPairs(instruction, stage).map(([name, value]) => [plainText(stage.expand(name)), stage.expand(value)] as const);
  for (const [name] of pairs) assertName(name, "ENV");
  stage.add(
    "ENV",
    pairs.flatMap(([name, value]) => [name, stepText(value)]),
    instruction.line,
  );
  for (const [name, value] of pairs) stage.variables.setEnv(name, value);
}

/** `ENV a=b c=d`, or the old form `ENV a the rest is the value`. */
function readPairs({ text }: Instruction, stage: Stage): readonly (readonly [string, string])[] {
  const words = splitWords(text, stage.escapeChar);
  const [first] = words;
  if (first === undefined) throw new InstructionError("ENV needs a name and a value. Write: ENV NAME=VALUE");
  if (!first.includes("=")) {
    const match = /^(\S+)\s+(.+)$/s.exec(text);
    if (match === null) throw new InstructionError(`ENV ${first} has no value. Write: ENV ${first}=VALUE`);
    return [[match[1] ?? "", match[2] ?? ""]];
  }
  return words.map((word) => {
    const equals = word.indexOf("=");
    if (equals > 0) return [word.slice(0, equals), word.slice(equals + 1)];
    throw new InstructionError(`ENV cannot read "${word.slice(0, 100)}": write NAME=VALUE, and quote a value with spaces.`);
  });
}

function assertName(name: string, keyword: string): void {
  if (/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)) return;
  throw new InstructionError(`"${name.slice(0, 100)}" is no name of a variable. ${keyword} takes letters, digits and underscores.`);
}

export interface BuildArgs {
  readonly given: Readonly<Record<string, string>>;
  /** The ones before FROM, whose values an ARG without one takes. */
  readonly global: Variables;
  /** Names of `given` that an ARG has asked for. */
  readonly used: Set<string>;
}

/** The declared arguments with their values; undefined is no value. */
export function readArgs(
  instruction: Instruction,
  options: BuildArgs & { readonly variables: Variables; readonly escapeChar: string },
): readonly (readonly [string, string | undefined])[] {
  refuseFlags(instruction, []);
  const words = splitWords(instruction.text, options.escapeChar);
  if (words.length === 0) throw new InstructionError("ARG needs a name. Write: ARG NAME=DEFAULT");
  return words.map((word) => {
    const equals = word.indexOf("=");
    const name = equals === -1 ? word : word.slice(0, equals);
    assertName(name, "ARG");
    const given = Object.hasOwn(options.given, name) ? options.given[name] : undefined;
    if (given !== undefined) {
      options.used.add(name);
      return [name, given];
    }
    if (equals === -1) return [name, options.global.lookUp(name).value];
    return [name, expandWord(word.slice(equals + 1), options.variables, { escapeChar: options.escapeChar })];
  });
}

/** The values of arguments are variables of the commands that follow. One that an ENV has set stays as it is. */
export function argInstruction(instruction: Instruction, stage: Stage, args: BuildArgs): void {
  const pairs = readArgs(instruction, { ...args, variables: stage.variables, escapeChar: stage.escapeChar });
  const env = pairs.flatMap(([name, value]) => (value === undefined || stage.variables.isEnv(name) ? [] : [name, stepText(value)]));
  for (const [name, value] of pairs) stage.variables.setArg(name, value);
  if (env.length > 0) stage.add("ENV", env, instruction.line);
}

export function workdirInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  const path = stepText(stage.expand(instruction.text));
  if (path === "") throw new InstructionError("WORKDIR needs a path, and this one is empty.");
  stage.add("WORKDIR", [path], instruction.line);
}

export function userInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  const written = stepText(stage.expand(instruction.text));
  const [name = "", group] = written.split(":");
  if (name === "" || /\s/.test(written)) throw new InstructionError(`USER needs one name, not "${written.slice(0, 100)}".`);
  const user = name === "0" ? "root" : name;
  if (group !== undefined && group !== name && !(user === "root" && ["0", "root"].includes(group))) {
    stage.notice(instruction.line, `The group of USER ${written} is left out: commands run with the groups of the user ${user}.`);
  }
  stage.user = user;
  stage.add("USER", [user], instruction.line);
}

export function shellInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  const words = readJsonForm(instruction.text);
  if (words === undefined || words.length === 0) {
    throw new InstructionError('SHELL takes the JSON form: SHELL ["/bin/bash", "-o", "pipefail", "-c"]');
  }
  // The builder runs every line with bash anyway.
  const isDefault = words.length === 2 && words[1] === "-c" && ["/bin/sh", "sh", "/bin/bash", "bash"].includes(words[0] ?? "");
  stage.shell = isDefault ? undefined : words;
}
