export { type AssembledAgent, type AssembleOptions, assembleAgent } from "./assemble-agent.ts";
