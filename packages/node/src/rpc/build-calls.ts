import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";

type BuildCalls = Pick<ServiceImpl<typeof NodeService>, "startBuild" | "watchBuild" | "cancelBuild" | "forgetBuild">;

/** The calls about builds. */
export function buildCalls(): BuildCalls {
  const refuse = () => {
    throw new ConnectError("this node builds no templates", Code.Unimplemented);
  };
  return { startBuild: refuse, watchBuild: refuse, cancelBuild: refuse, forgetBuild: refuse };
}
