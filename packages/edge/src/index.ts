export { connectDialer } from "./connect-dialer.ts";
export { createEdge, type Edge, type EdgeConfig, type EdgeDeps } from "./edge.ts";
export type { Absence, Dial, DialErrorCode, Route, RouteAnswer, RouteTable, Visitor } from "./ports.ts";
export { type RouteTableOptions, routeTableFrom } from "./route-table.ts";
