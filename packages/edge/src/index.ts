export { createEdge, type Edge, type EdgeConfig, type EdgeDeps, type TlsConfig } from "./edge.ts";
export type { DialErrorCode } from "./errors.ts";
export { findLinkFrom } from "./links/find-link.ts";
export type { ApiRoute } from "./platform-api/serve-api.ts";
export type { Absence, Dial, FindLink, FindSigner, Ingress, Route, RouteAnswer, RouteTable, ValidLink, Visitor } from "./ports.ts";
export { connectDialer } from "./routing/connect-dialer.ts";
export { type RouteTableOptions, routeTableFrom } from "./routing/route-table.ts";
export { findSignerFrom } from "./signatures/find-signer.ts";
export { CertificateFiles, type CertificateOptions } from "./tls/certificate-files.ts";
