import { expect, it } from "vitest";
import { parseGroup, parsePasswd } from "./parse.ts";

it("reads users and skips what is not one", () => {
  const text =
    "# comment\nroot:x:0:0:root:/root:/bin/bash\n\nbroken:x:0\nuser:x:1000:1001:,,,:/home/user:/bin/bash\nbad:x:one:1::/:\n+nis::::::\nnoshell:x:5:6::/\n";
  expect(parsePasswd(text)).toEqual([
    { name: "root", uid: 0, gid: 0, home: "/root" },
    { name: "user", uid: 1000, gid: 1001, home: "/home/user" },
    { name: "noshell", uid: 5, gid: 6, home: "/" },
  ]);
});

it("reads groups with and without members", () => {
  expect(parseGroup("root:x:0:\nsudo:x:27:user,other\nbad:x:\n")).toEqual([
    { name: "root", gid: 0, members: [] },
    { name: "sudo", gid: 27, members: ["user", "other"] },
  ]);
});
