export { AGENT_ROOT, type AgentArch, agentCommand, nodeArguments } from "./command.ts";
