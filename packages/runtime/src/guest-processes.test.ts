import { expect, it } from "vitest";
import { kindOf } from "./guest-processes.privileged.ts";

const RUNSC = "/var/lib/skerry/bin/runsc-1c753653af3b";
const line = (path: string) => `7f0000000000-7f0000001000 r-xp 00000000 00:21 1234                       ${path}`;

it.each([
  ["gVisor's kernel, which has every file of the guest open too", [RUNSC, "/root/.skerry/bin/node", "[stack]"], "gvisor"],
  ["the agent's stub", ["/memfd:runsc-memory (deleted)", "/root/.skerry/lib/libc.so.6", "/root/.skerry/bin/node"], "agent"],
  ["the first stub, from which the others are forked", ["/memfd:systrap-memory (deleted)", "[vsyscall]"], "guest"],
  ["a program of the guest's", ["/memfd:runsc-memory (deleted)", "/root/usr/bin/python3.11"], "guest"],
  ["the guest's own Node.js", ["/root/usr/bin/node"], "guest"],
  ["a process that has ended", [], "guest"],
])("tells %s by its mappings", (_what, paths, kind) => {
  expect(kindOf(RUNSC, paths.map(line).join("\n"))).toBe(kind);
});
