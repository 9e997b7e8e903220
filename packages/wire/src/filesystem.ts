export * from "../gen/agent/filesystem/filesystem_pb.js";
