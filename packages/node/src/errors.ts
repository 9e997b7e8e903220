export type NodeErrorCode =
  | "agent_failed"
  | "already_exists"
  | "already_running"
  | "build_missing"
  | "capacity_unavailable"
  | "disk_full"
  | "entry_exists"
  | "entry_missing"
  | "guest_unresponsive"
  | "image_damaged"
  | "image_missing"
  | "image_not_written"
  | "image_unusable"
  | "invalid_argument"
  | "is_a_directory"
  | "links_not_kept"
  | "memory_unavailable"
  | "not_a_directory"
  | "not_a_file"
  | "not_kept"
  | "path_invalid"
  | "port_closed"
  | "runtime_failed"
  | "runtime_unavailable"
  | "sandbox_gone"
  | "volume_damaged"
  | "volume_full"
  | "volume_in_use"
  | "volume_missing";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly node: NodeErrorCode;
  }
}
