import { asError, errnoOf, PlatformError, SubprocessError } from "@skerry/base";
import { DISK_FULL_MESSAGE } from "@skerry/wire";
import { isDiskFull } from "../disk/disk-full.privileged.ts";

/** Resources that the host can run out of, by the code of a failed system call or by the message of a runtime. */
const SCARCE: readonly { readonly code: string; readonly words: RegExp; readonly what: string }[] = [
  {
    code: "EMFILE",
    words: /too many open files(?! in system)/i,
    what: "file descriptors left for the platform (its limit is LimitNOFILE, or ulimit -n)",
  },
  { code: "ENFILE", words: /too many open files in system/i, what: "file descriptors left (its limit is fs.file-max)" },
  {
    code: "EAGAIN",
    words: /resource temporarily unavailable/i,
    what: "processes left for the platform (the limit is that of its control group, or ulimit -u)",
  },
  { code: "ENOMEM", words: /cannot allocate memory/i, what: "memory left" },
];

/**
 * Tells callers which resource the host ran out of, if an operation failed for that reason and changed nothing. `dir` is on the data
 * disk. Undefined for a failure with a public message of its own, which tells what became of the sandbox.
 */
export function scarcityOf(error: unknown, dir: string): string | undefined {
  if (isDiskFull(error, dir)) return DISK_FULL_MESSAGE;
  if (error instanceof PlatformError && error.publicMessage !== undefined && error.code !== "image_not_written") return undefined;
  const code = errnoOf(error);
  const scarce = SCARCE.find((one) => one.code === code || says(error, one.words));
  if (scarce) return `The machine has no ${scarce.what}`;
  if (!asError(error).message.includes("/dev/loop")) return undefined;
  return "The machine has no loop devices left, which the disks of sandboxes need; ./skerry doctor checks them";
}

function says(error: unknown, words: RegExp): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (words.test(each instanceof SubprocessError ? each.stderr : each.message)) return true;
  }
  return false;
}
