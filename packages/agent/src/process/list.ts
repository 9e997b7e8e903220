import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListResponseSchema } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

/** Processes as clients described them, whoever's they are. */
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
