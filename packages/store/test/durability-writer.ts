// Writes teams until it is killed, and prints the id of each one that was acknowledged.
import { writeSync } from "node:fs";
import { openStore } from "@skerry/store";

const store = await openStore(`sqlite:${process.argv[2]}`);
for (let count = 1; ; count += 1) {
  await store.identity.putTeam({ id: `t${count}`, slug: `t${count}`, name: "T", createdAt: count });
  writeSync(1, `t${count}\n`);
}
