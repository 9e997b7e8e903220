import { asError, isOutOfSpace, PlatformError } from "@skerry/base";
import { DISK_FULL_MESSAGE } from "@skerry/wire";
import { BuildFailure } from "./build-failure.ts";
import { StepFailure } from "./steps/step.ts";

export const INTERNAL_ERROR = "An internal error occurred. Please try again or contact support with the build ID.";
export const CANCELLED = "build was cancelled";

/** What the caller is told of a failure. `step` is the one under way. */
export function asBuildFailure(error: unknown, { step, signal }: { readonly step: string; readonly signal: AbortSignal }): BuildFailure {
  if (signal.aborted)
    return signal.reason instanceof BuildFailure ? signal.reason : new BuildFailure(CANCELLED, { step: "", cause: error });
  if (error instanceof BuildFailure) return error;
  if (error instanceof StepFailure) return new BuildFailure(error.message, { step, cause: error });
  if (error instanceof PlatformError && error.publicMessage !== undefined) {
    return new BuildFailure(error.publicMessage, { step, cause: error });
  }
  if (isOutOfSpace(error)) return new BuildFailure(DISK_FULL_MESSAGE, { step, cause: error });
  if (error instanceof PlatformError && error.code === "build_sandbox_lost") {
    return new BuildFailure("the sandbox of this step ended unexpectedly", { step, cause: error });
  }
  return new BuildFailure(INTERNAL_ERROR, { step: "", cause: asError(error) });
}
