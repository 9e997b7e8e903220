import { describe } from "vitest";
import { describeNodeCrashes } from "./crash-points/node-crashes.ts";

describe("kill -9 of a node on gvisor", () => describeNodeCrashes("gvisor"));
