export * from "../gen/node/node_pb.js";
export { decodeOptions, encodeOptions, parseOptions, type SandboxOptions } from "./sandbox-options.ts";
