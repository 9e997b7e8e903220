/** Bytes that may wait in each stream of a connection before its sender is held back. Chosen by measurement: see docs/performance.md. */
export const STREAM_BUFFER_BYTES = 256 * 1024;
