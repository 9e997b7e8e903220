export * from "../gen/agent/process/process_pb.js";
