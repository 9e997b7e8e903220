export { isBearer, isSameSecret } from "./bearer.ts";
export { type Clock, systemClock } from "./clock.ts";
export { ConfigReader } from "./config.ts";
export { armCrashPoint, reachCrashPoint } from "./crash-point.ts";
export { endingConnections } from "./end-connections.ts";
export {
  asError,
  type ErrorCodes,
  errnoName,
  errnoOf,
  isOutOfSpace,
  PlatformError,
  type PlatformErrorCode,
  type PlatformErrorOptions,
} from "./error.ts";
export { IdleMemory, type IdleMemoryOptions } from "./idle-memory.ts";
export { KeyedLock } from "./keyed-lock.ts";
export { createLogger, type Logger, type LogLevel } from "./log.ts";
export { mountsBelow } from "./mounts.ts";
export { RelaySocket, type RelaySocketOptions } from "./relay-socket.ts";
export { type BegunAuditLine, currentRequest, type RequestContext, withRequest } from "./request-context.ts";
export { Secret } from "./secret.ts";
export { type RunOptions, type RunResult, runCommand, type SpawnOptions, SubprocessError, spawnCommand } from "./subprocess.ts";
export { untilAborted } from "./until-aborted.ts";
