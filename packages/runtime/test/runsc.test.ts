import { createRunscRuntime, readHostFacts } from "@skerry/runtime";
import { runtimeContract } from "@skerry/testkit/contracts/runtime-contract";
import { testTools } from "@skerry/testkit/tools";

runtimeContract({
  name: "runsc",
  create: (stateDir) => createRunscRuntime({ binary: testTools().runsc, stateDir, host: readHostFacts() }),
});
