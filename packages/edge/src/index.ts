export { connectDialer } from "./connect-dialer.ts";
export { createEdge, type Edge, type EdgeConfig, type EdgeDeps } from "./edge.ts";
export type { Dial, DialErrorCode, Route, RouteTable } from "./ports.ts";
export { type RouteTableOptions, routeTableFrom } from "./route-table.ts";
