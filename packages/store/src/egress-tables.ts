export interface EgressTables {
  egress_logs: EgressLogTable;
  egress_lines: EgressLineTable;
  egress_sources: { source: string; number: number; changed_at: number };
  team_egress: EgressCountColumns & { team_id: string; at: number };
}

export interface EgressCountColumns {
  sent: number;
  received: number;
  connections: number;
  refused: number;
}

export interface EgressLogTable extends EgressCountColumns {
  sandbox_id: string;
  team_id: string;
  last_position: number;
  lines: number;
  changed_at: number;
}

export interface EgressLineTable {
  sandbox_id: string;
  position: number;
  at: number;
  protocol: string;
  name: string;
  address: string;
  port: number;
  sent: number;
  received: number;
  is_allowed: number;
  rule: string;
  count: number;
}
