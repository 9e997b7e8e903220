export { type AssembledAgent, type AssembleOptions, assembleAgent } from "./assemble-agent.ts";
export { hostArch, koffiAddon } from "./sources.ts";
