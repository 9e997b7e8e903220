/** One row for each volume, until its node has deleted it. */
export interface VolumeTable {
  id: string;
  team_id: string;
  name: string;
  node_id: string;
  size_mb: number;
  state: string;
  state_changed_at: number;
  owner: string;
  created_at: number;
}
