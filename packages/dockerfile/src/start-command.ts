import type { Instruction } from "./read-instructions.ts";
import { quoteWords } from "./shell-quote.ts";
import { type ProgramForm, readProgram, refuseFlags, type Stage } from "./stage.ts";

/** CMD and ENTRYPOINT: the last one of each counts. */
export function startInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  const program = readProgram(instruction, stage);
  if (instruction.keyword === "CMD") stage.command = program;
  else stage.entrypoint = program;
}

/** What Docker would run: ENTRYPOINT with the words of CMD after it, or CMD alone. "" when there is neither. */
export function startCommand(stage: Stage): string {
  const { entrypoint, command } = stage;
  if (entrypoint === undefined || isEmpty(entrypoint)) return command === undefined ? "" : commandLine(command, stage);
  if ("shellLine" in entrypoint || command === undefined) return commandLine(entrypoint, stage);
  if ("words" in command) return quoteWords([...entrypoint.words, ...command.words]);
  return quoteWords([...entrypoint.words, ...(stage.shell ?? ["/bin/sh", "-c"]), command.shellLine]);
}

function commandLine(form: ProgramForm, stage: Stage): string {
  return "words" in form ? quoteWords(form.words) : stage.shellCommand(form.shellLine);
}

function isEmpty(form: ProgramForm): boolean {
  return "words" in form && form.words.length === 0;
}
