export * from "../gen/control/control_pb.js";
