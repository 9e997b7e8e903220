export type RuntimeErrorCode =
  | "bandwidth_unsupported"
  | "image_unusable"
  | "namespace_failed"
  | "network_pool_empty"
  | "runtime_failed"
  | "runtime_unavailable"
  | "state_not_savable";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly runtime: RuntimeErrorCode;
  }
}
