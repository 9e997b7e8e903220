export { createEdge, type Edge, type EdgeConfig, type EdgeDeps } from "./edge.ts";
export type { Absence, Dial, DialErrorCode, Route, RouteAnswer, RouteTable, Visitor } from "./ports.ts";
export { connectDialer } from "./routing/connect-dialer.ts";
export { type RouteTableOptions, routeTableFrom } from "./routing/route-table.ts";
