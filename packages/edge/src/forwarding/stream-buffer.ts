/** Bytes that may wait in each stream of a client's connection before its sender is held back. More was no faster when measured. */
export const STREAM_BUFFER_BYTES = 256 * 1024;
