import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListResponseSchema } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

/** The running processes of all users, as clients described them. */
export function list(process: ProcessContext): MessageInitShape<typeof ListResponseSchema> {
  return {
    processes: process.table.list().map(({ pid, identity }) => ({
      pid,
      config: {
        cmd: identity.cmd,
        args: [...identity.args],
        envs: { ...identity.envs },
        ...(identity.cwd === undefined ? {} : { cwd: identity.cwd }),
      },
      ...(identity.tag === undefined ? {} : { tag: identity.tag }),
    })),
  };
}
