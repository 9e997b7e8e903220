import { isOutOfSpace, PlatformError, SubprocessError } from "@skerry/base";
import { EXIT_CODES, OperatorError } from "@skerry/setup/folder";
import { painter, printable } from "./terminal/text.ts";

/** Prints a failure with what to do about it, and returns its exit code. */
export function reportFailure(error: unknown): number {
  const paint = painter(process.stderr);
  const write = (line: string) => process.stderr.write(`${line}\n`);
  if (error instanceof OperatorError) {
    write(`${paint("bad", "skerry:")} ${printable(error.message)}`);
    for (const line of error.hints) write(`  ${printable(line)}`);
    return EXIT_CODES[error.exit].code;
  }
  if (error instanceof PlatformError && error.code === "config_invalid") {
    write(`${paint("bad", "skerry:")} ${printable(error.message)}`);
    return EXIT_CODES.usage.code;
  }
  const known = error instanceof PlatformError || error instanceof SubprocessError || isSystemError(error);
  write(`${paint("bad", "skerry:")} ${printable(error instanceof Error ? error.message : String(error))}`);
  if (isOutOfSpace(error)) {
    write("  A disk is full. If it is the disk of the data folder, ./skerry down kills every sandbox and frees their space.");
    return EXIT_CODES.failed.code;
  }
  // Unexpected: a bug report needs the stack.
  if (!known && error instanceof Error) write(paint("dim", printable(error.stack ?? "")));
  write("  To check this host, run ./skerry doctor.");
  return EXIT_CODES.failed.code;
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).errno === "number";
}
