import { dataDirOf, dataFolder } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { holdDaemonLock } from "../daemon/daemon-lock.privileged.ts";
import { rotateOwnLog } from "../daemon/log-rotation.ts";

export interface ServeOptions {
  readonly data?: string;
  readonly roles?: string;
  readonly runtime?: string;
}

/** Runs the platform in this process until it is told to stop. Everything is a SKERRY_ setting; the options are short forms. */
export async function serve(context: OperatorContext, options: ServeOptions): Promise<void> {
  const { logFile, daemonLockFile } = dataFolder(dataDirOf(options.data, context.env));
  // Without it, where it can't be had, the other commands know this process by the pid file alone.
  holdDaemonLock(daemonLockFile);
  using _rotation = rotateOwnLog(logFile);
  await context.serve({
    ...context.env,
    ...(options.data !== undefined && { SKERRY_DATA: options.data }),
    ...(options.roles !== undefined && { SKERRY_ROLES: options.roles }),
    ...(options.runtime !== undefined && { SKERRY_RUNTIME: options.runtime }),
  });
}
