import { dataDirOf, dataFolder } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { holdDaemonLock } from "../daemon/daemon-lock.privileged.ts";
import { rotateOwnLog } from "../daemon/log-rotation.ts";

export interface ServeOptions {
  readonly data?: string;
  readonly roles?: string;
  readonly runtime?: string;
}

/** Runs the platform in this process until SIGTERM or SIGINT. The options are short forms of SKERRY_ settings. */
export async function serve(context: OperatorContext, options: ServeOptions): Promise<void> {
  const { logFile, daemonLockFile } = dataFolder(dataDirOf(options.data, context.env));
  // If the lock cannot be taken, the other commands find this process by the pid file alone.
  holdDaemonLock(daemonLockFile);
  using _rotation = rotateOwnLog(logFile);
  await context.serve({
    ...context.env,
    ...(options.data !== undefined && { SKERRY_DATA: options.data }),
    ...(options.roles !== undefined && { SKERRY_ROLES: options.roles }),
    ...(options.runtime !== undefined && { SKERRY_RUNTIME: options.runtime }),
  });
}
