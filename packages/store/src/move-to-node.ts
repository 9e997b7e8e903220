import { connect } from "./open-store.ts";

/**
 * Gives everything in the database to one node: after the only node of a platform got another name, because its folder was restored on
 * another host or at another path.
 */
export async function moveToNode(url: string, node: { readonly id: string; readonly url: string }): Promise<void> {
  const { db } = connect(url, undefined);
  try {
    await db.transaction().execute(async (tx) => {
      await tx.updateTable("sandboxes").set({ node_id: node.id, node_url: node.url }).execute();
      await tx.updateTable("images").set({ node_id: node.id }).execute();
      await tx.updateTable("volumes").set({ node_id: node.id }).execute();
      await tx.updateTable("builds").set({ node_id: node.id }).where("node_id", "is not", null).execute();
      await tx.updateTable("builds").set({ builder_node_id: node.id }).where("builder_node_id", "is not", null).execute();
      await tx.updateTable("builds").set({ layers_node_id: node.id }).where("layers_node_id", "is not", null).execute();
      await tx.deleteFrom("node_statuses").execute();
    });
  } finally {
    await db.destroy();
  }
}
