import { join } from "node:path";
import { readJsonFile } from "@skerry/setup/folder";
import { type Check, good, warn } from "./check.ts";

/** What the node notes beside its sandboxes: whose they are, and who else asked for them. */
interface ClusterFile {
  readonly id: string;
  readonly refused?: { readonly id: string; readonly at: string };
}

/** A refused control plane is noted again every minute that it goes on asking. */
const RECENT_MS = 10 * 60_000;

/** Whether a control plane on another database has asked for this machine's sandboxes. */
export const CLUSTER_CHECK: Check = {
  name: "cluster",
  async run({ folder }) {
    const file = join(folder.root, "node/cluster.json");
    const known = await readJsonFile<ClusterFile>(file);
    if (!known) return good("this machine belongs to none yet");
    const { refused } = known;
    if (!refused || Date.now() - Date.parse(refused.at) > RECENT_MS) return good(known.id);
    return warn(
      `holds sandboxes of ${known.id}; ${refused.id || "one without a name"} asked for them at ${refused.at} and was refused`,
      `Point that api at the database of before (SKERRY_DATABASE_URL). To lose what is here instead, delete ${file} and restart.`,
    );
  },
};
