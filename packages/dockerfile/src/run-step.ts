import { InstructionError } from "./dockerfile-error.ts";
import { heredocText } from "./heredoc.ts";
import { MAX_COMMAND_BYTES } from "./limits.ts";
import type { Instruction } from "./read-instructions.ts";
import { quoteWord, quoteWords } from "./shell-quote.ts";
import { readProgram, refuseFlags, type Stage } from "./stage.ts";

export function runInstruction(instruction: Instruction, stage: Stage): void {
  refuseFlags(instruction, []);
  const command = runCommand(instruction, stage);
  assertCommandFits(command);
  stage.add("RUN", [command], instruction.line);
}

function runCommand(instruction: Instruction, stage: Stage): string {
  const [heredoc] = instruction.heredocs;
  if (heredoc !== undefined && instruction.text === heredoc.word) {
    const script = heredocText(heredoc);
    return script.startsWith("#!") ? scriptCommand(script) : stage.shellCommand(script);
  }
  const form = readProgram(instruction, stage);
  if ("words" in form) {
    if (form.words.length === 0) throw new InstructionError("RUN says nothing to run. Add a command, or remove the line.");
    return quoteWords(form.words);
  }
  const documents = instruction.heredocs.map(({ content, name }) => `${content}${name}\n`);
  return stage.shellCommand(documents.length === 0 ? form.shellLine : `${form.shellLine}\n${documents.join("")}`);
}

/** A script that names its interpreter is run as a file, as the kernel would. */
function scriptCommand(script: string): string {
  const write = `f=$(mktemp) && printf %s ${quoteWord(script)} > "$f" && chmod 700 "$f"`;
  return `${write} && { "$f"; s=$?; rm -f "$f"; exit $s; }`;
}

export function assertCommandFits(command: string): void {
  if (Buffer.byteLength(command) <= MAX_COMMAND_BYTES) return;
  throw new InstructionError(`A command can have ${MAX_COMMAND_BYTES} bytes at most. Put the script into a file, COPY it and run it.`);
}
