/** Buffer size of each stream of a client's connection before backpressure applies. Larger buffers were not faster when measured. */
export const STREAM_BUFFER_BYTES = 256 * 1024;
