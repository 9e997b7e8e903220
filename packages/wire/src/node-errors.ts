/**
 * Errors of the node's RPC: the code in `ErrorDetail` (spec/node/node.proto), and its RPC code, as a number of gRPC. Several codes share
 * an RPC code, so the control plane reads the detail to tell them apart. `docs/errors.md` is compared with this table by a test.
 */
export const NODE_ERRORS = {
  invalid_argument: 3,
  /** A path of a volume that is malformed, or leads out of it. The message is for callers. */
  path_invalid: 3,
  build_missing: 5,
  entry_missing: 5,
  image_missing: 5,
  sandbox_gone: 5,
  volume_missing: 5,
  already_exists: 6,
  /** A file or directory of a volume. */
  entry_exists: 6,
  /** Too many starts are waiting. */
  capacity_unavailable: 8,
  /** The host has run out of a resource. The message is for callers and names the resource. */
  machine_exhausted: 8,
  volume_full: 8,
  is_a_directory: 9,
  layer_missing: 9,
  not_a_directory: 9,
  not_a_file: 9,
  runtime_unavailable: 9,
  volume_in_use: 9,
  /** A process in the sandbox has something open that cannot be saved. The message is for callers and names it. */
  state_not_savable: 10,
  /** The host cannot limit bandwidth. The message is for callers. */
  bandwidth_unsupported: 12,
  internal: 13,
  guest_unresponsive: 14,
  image_damaged: 15,
  volume_damaged: 15,
} as const satisfies Record<string, number>;

export type NodeErrorCode = keyof typeof NODE_ERRORS;

/** The message of `machine_exhausted` when the data disk of the host is full. */
export const DISK_FULL_MESSAGE =
  "The disk of the machine is full. To free space at once, kill sandboxes (paused ones too), delete snapshots, or delete files in a sandbox";
