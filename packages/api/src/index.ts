export type { ApiConfig, ApiTiming } from "./config.ts";
export { type Api, type ApiDeps, createApi } from "./create-api.ts";
export { createOpenApi } from "./http/openapi.ts";
export { OPERATIONS } from "./http/operations.ts";
export { API_KEY_PREFIX, credentialOf, makeApiKey } from "./keys/credential.ts";
export { clusterInterceptor } from "./nodes/cluster-interceptor.ts";
export type { NodeDirectory, NodeHandle } from "./nodes/directory.ts";
export { findOwner, type SeedSecrets, seedIdentity } from "./seed/seed-identity.ts";
export { seedTemplates } from "./seed/seed-templates.ts";
