import { clusterOfNode } from "@skerry/node/folder";
import { type Check, pass, warn } from "./check.ts";

/** Age up to which a refusal counts as current. A control plane that keeps asking is recorded again every minute. */
const RECENT_MS = 10 * 60_000;

/** Whether a control plane with another database has asked for this host's sandboxes. */
export const CLUSTER_CHECK: Check = {
  name: "cluster",
  async run({ folder }) {
    const { id, refused, file } = clusterOfNode(folder.nodeDir);
    if (id === "") return pass("none yet");
    if (!refused || Date.now() - Date.parse(refused.at) > RECENT_MS) return pass(id);
    return warn(
      `holds sandboxes of cluster ${id}, and refused cluster ${refused.id || "(unnamed)"} at ${refused.at}`,
      `Point that API at its former database (SKERRY_DATABASE_URL). To discard the sandboxes on this host instead, delete ${file} and restart.`,
    );
  },
};
