// The failures that a BuildHost reports. They are made here, because a package throws only its own error codes.

import { PlatformError } from "@skerry/base";

/** The agent did not start a command: the user or the directory does not exist. The message is the agent's own, for the caller. */
export function commandRefused(message: string, cause?: unknown): PlatformError {
  return new PlatformError("build_command_refused", message, { publicMessage: message, cause });
}

/** Files could not be placed. The message is for the caller. */
export function copyFailed(message: string, cause?: unknown): PlatformError {
  return new PlatformError("build_copy_failed", message, { publicMessage: message, cause });
}

/** The sandbox of a step ended. The message is for the caller, and says why if that is known. */
export function sandboxLost(message: string, cause?: unknown): PlatformError {
  return new PlatformError("build_sandbox_lost", message, { publicMessage: message, cause });
}
