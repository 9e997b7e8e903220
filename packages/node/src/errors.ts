export type NodeErrorCode =
  | "agent_failed"
  | "already_exists"
  | "already_running"
  | "build_missing"
  | "capacity_unavailable"
  | "disk_full"
  | "guest_unresponsive"
  | "image_damaged"
  | "image_missing"
  | "image_not_written"
  | "image_unusable"
  | "invalid_argument"
  | "links_not_kept"
  | "memory_unavailable"
  | "not_kept"
  | "port_closed"
  | "runtime_failed"
  | "runtime_unavailable"
  | "sandbox_gone";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly node: NodeErrorCode;
  }
}
