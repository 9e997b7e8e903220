import { createRuncRuntime, readHostFacts } from "@skerry/runtime";
import { runtimeContract } from "@skerry/testkit/contracts/runtime-contract";
import { testTools } from "@skerry/testkit/tools";

runtimeContract({
  name: "runc",
  create: (stateDir) => createRuncRuntime({ binary: testTools().runc, stateDir, host: readHostFacts() }),
});
