export * from "../gen/node/node_pb.js";
