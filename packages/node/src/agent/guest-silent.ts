import { PlatformError } from "@skerry/base";

export function guestSilent(sandboxId: string): PlatformError {
  return new PlatformError("guest_unresponsive", `the agent of sandbox ${sandboxId} does not answer`, {
    publicMessage:
      "the sandbox's agent does not answer, so it was not paused; it runs on as before: try again, or pause it with its memory",
  });
}
