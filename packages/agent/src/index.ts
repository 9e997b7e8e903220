export { AGENT_ROOT, type AgentArch, agentCommand } from "./command.ts";
