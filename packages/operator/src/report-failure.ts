import { isOutOfSpace, PlatformError, SubprocessError } from "@skerry/base";
import { EXIT_CODES, OperatorError } from "@skerry/setup/folder";
import { painter, printable } from "./terminal/text.ts";

/** Shows a failure as one that somebody has to mend, and returns the exit code for it. */
export function reportFailure(error: unknown): number {
  const paint = painter(process.stderr);
  const write = (line: string) => process.stderr.write(`${line}\n`);
  if (error instanceof OperatorError) {
    write(`${paint("bad", "skerry:")} ${printable(error.message)}`);
    for (const line of error.mend) write(`  ${printable(line)}`);
    return EXIT_CODES[error.exit].code;
  }
  if (error instanceof PlatformError && error.code === "config_invalid") {
    write(`${paint("bad", "skerry:")} ${printable(error.message)}`);
    return EXIT_CODES.usage.code;
  }
  const known = error instanceof PlatformError || error instanceof SubprocessError || isSystemError(error);
  write(`${paint("bad", "skerry:")} ${printable(error instanceof Error ? error.message : String(error))}`);
  if (isOutOfSpace(error)) {
    write("  A disk is full. Where it is the one of the data folder: ./skerry down ends every sandbox, which makes room.");
    return EXIT_CODES.failed.code;
  }
  // Something that no check foresaw: where it happened is what a report needs.
  if (!known && error instanceof Error) write(paint("dim", printable(error.stack ?? "")));
  write("  What this machine lacks: ./skerry doctor");
  return EXIT_CODES.failed.code;
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).errno === "number";
}
