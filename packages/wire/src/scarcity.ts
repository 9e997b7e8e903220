/** What callers hear, as a `capacity_unavailable`, when the data disk of a machine is full. */
export const DISK_FULL_MESSAGE =
  "The disk of the machine is full. Killing sandboxes, paused ones too, and deleting snapshots makes room at once; so does deleting files in a sandbox";

/**
 * On a node's refusal: what it is about, with one of the values below. With `scarcity` (RESOURCE_EXHAUSTED) the text is for callers,
 * and says what the machine has run out of.
 */
export const NODE_CAUSE_HEADER = "skerry-cause";
/** What a process in the sandbox has open can't be saved. The text is for callers, and names it. */
export const UNSAVABLE_CAUSE = "unsavable";
/** The agent of the sandbox does not answer. */
export const SILENT_CAUSE = "silent";
export const SCARCITY_CAUSE = "scarcity";
