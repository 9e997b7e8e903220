import type { AgentState } from "../state.ts";
import type { ProcessTable } from "./running/table.ts";

/** What every method of the process service needs. */
export interface ProcessContext {
  readonly state: AgentState;
  readonly table: ProcessTable;
  /** Path of tini in the agent's tree. */
  readonly tini: string;
}
