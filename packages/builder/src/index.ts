import "./errors.ts";

export { BuildFailure } from "./build-failure.ts";
export type {
  BuildCommand,
  BuildCopy,
  BuildHost,
  BuildLog,
  BuildSandbox,
  BuildSize,
  CommandEnd,
  LogLevel,
} from "./build-host.ts";
