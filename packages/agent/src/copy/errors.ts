/** The archive itself is at fault: it is damaged, hostile, or has entries that cannot be placed. */
export class ArchiveError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ArchiveError";
  }
}

/** The archive is readable, but its content cannot be placed at the destination. */
export class PlacementError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PlacementError";
  }
}
