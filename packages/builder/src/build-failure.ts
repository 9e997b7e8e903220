/** Why a build failed, in words for the caller. Any other error is an internal one, whose message the caller does not see. */
export class BuildFailure extends Error {
  override readonly name = "BuildFailure";
  /** "base", "1" … "N", "finalize", or "" when no step is to blame. */
  readonly step: string;

  constructor(message: string, options: { readonly step: string; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.step = options.step;
  }
}
