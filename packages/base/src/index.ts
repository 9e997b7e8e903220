export { isBearer } from "./bearer.ts";
export { type Clock, systemClock } from "./clock.ts";
export { ConfigReader } from "./config.ts";
export { asError, errnoOf, PlatformError, type PlatformErrorOptions } from "./error.ts";
export { KeyedLock } from "./keyed-lock.ts";
export { createLogger, type Logger, type LogLevel } from "./log.ts";
export { RelaySocket, type RelaySocketOptions } from "./relay-socket.ts";
export { Secret } from "./secret.ts";
export { type RunOptions, type RunResult, runCommand, type SpawnOptions, SubprocessError, spawnCommand } from "./subprocess.ts";
