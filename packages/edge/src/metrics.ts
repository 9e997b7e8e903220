// The metrics of the edge.

import { counter, histogram, observedCounter, observedGauge } from "@skerry/telemetry";

export const admissions = counter({
  name: "skerry_edge_requests_total",
  help: "Requests for sandboxes, by outcome: admitted, gone (the client left meanwhile), or the status with which the edge refused.",
  labels: ["outcome"],
});

export const admissionDuration = histogram({
  name: "skerry_edge_admission_duration_seconds",
  help: "How long the edge takes until it is connected to the sandbox of a request or refuses, in seconds. Includes waking the sandbox.",
});

export const connections = observedGauge({
  name: "skerry_edge_connections",
  help: "Open connections of clients, by listener (http, https).",
  labels: ["listener"],
});

export const connectionLimit = observedGauge({
  name: "skerry_edge_connections_limit",
  help: "Connections of clients, and streams of HTTP/2, that the edge accepts at the same time.",
});

export const refusedConnections = counter({
  name: "skerry_edge_refused_connections_total",
  help: "Connections of clients that were refused because there were too many.",
});

export const streams = observedGauge({
  name: "skerry_edge_http2_streams",
  help: "Open streams of HTTP/2 connections.",
});

export const sandboxConnections = observedGauge({
  name: "skerry_edge_sandbox_connections",
  help: "Open connections to ports of sandboxes.",
});

export const sandboxBytes = observedCounter({
  name: "skerry_edge_sandbox_bytes_total",
  help: "Bytes on connections to ports of sandboxes, by direction (to_sandbox, from_sandbox).",
  labels: ["direction"],
});
