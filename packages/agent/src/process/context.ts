import type { AgentState } from "../state.ts";
import type { ProcessTable } from "./running/table.ts";

/** What every process method works with. */
export interface ProcessContext {
  readonly state: AgentState;
  readonly table: ProcessTable;
  /** tini in the agent's tree. */
  readonly tini: string;
}
