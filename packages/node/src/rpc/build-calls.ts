import type { ServiceImpl } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";
import type { Builds } from "../builds/builds.ts";
import type { NodeConfig } from "../config.ts";
import { encodeError, encodeErrors, rpcError } from "./encode-errors.ts";

type BuildCalls = Pick<ServiceImpl<typeof NodeService>, "startBuild" | "watchBuild" | "cancelBuild" | "forgetBuild">;

/** The calls about builds. */
export function buildCalls(config: NodeConfig, builds: Builds): BuildCalls {
  return {
    async startBuild({ spec }) {
      if (!spec) throw rpcError("invalid_argument", "spec is missing");
      await encodeErrors(config, () => builds.start(spec));
      return {};
    },
    async *watchBuild({ buildId, from }, { signal }) {
      try {
        yield* builds.watch(buildId, Number(from), signal);
      } catch (error) {
        throw encodeError(config, error);
      }
    },
    async cancelBuild({ buildId }) {
      await encodeErrors(config, () => builds.cancel(buildId));
      return {};
    },
    async forgetBuild({ buildId }) {
      await encodeErrors(config, () => builds.forget(buildId));
      return {};
    },
  };
}
