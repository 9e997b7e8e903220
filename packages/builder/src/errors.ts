export type BuilderErrorCode = "build_command_refused" | "build_copy_failed" | "build_sandbox_lost" | "build_tools_missing";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly builder: BuilderErrorCode;
  }
}
