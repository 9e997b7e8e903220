import { constants, type ServerSessionOptions } from "node:http2";

/** Requests that one connection may have at a time. Clients open further connections, or wait. */
export const MAX_STREAMS = 128;

/** Header fields of one request. Each costs memory beside its bytes. */
const MAX_FIELDS = 1_024;

/** Bytes of a request's body that a client may send ahead of the sandbox. */
const STREAM_WINDOW_BYTES = 256 * 1024;

/** Resets by the client that a connection may see at once, and then in each second. A client that cancels commands needs a few. */
const RESETS = { streamResetBurst: 200, streamResetRate: 50 };

/** Bounds what one client connection can cost. The HTTP/2 library refuses frames that exceed these limits. */
export function sessionOptions(maxHeaderBytes: number): ServerSessionOptions {
  return {
    ...RESETS,
    maxHeaderListPairs: MAX_FIELDS,
    maxSettings: 32,
    maxOutstandingPings: 10,
    // Frames that are invalid, or empty without being the last.
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
    // Megabytes of the library's own state, and of responses that the client has not read yet.
    maxSessionMemory: 32,
    paddingStrategy: constants.PADDING_STRATEGY_NONE,
    // Answers of servers in sandboxes may repeat fields. HTTP/1.1 forwards them too.
    strictSingleValueFields: false,
    settings: {
      enablePush: false,
      // WebSockets (RFC 8441).
      enableConnectProtocol: true,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: maxHeaderBytes,
    },
  };
}
