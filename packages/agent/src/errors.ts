export type AgentErrorCode = "agent_broken" | "agent_library_missing" | "agent_unsupported";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly agent: AgentErrorCode;
  }
}
