// The metrics of the database and of what is stored in it.

import { counter, histogram, observedGauge } from "@skerry/telemetry";

export const queryDuration = histogram({
  name: "skerry_database_query_duration_seconds",
  help: "Duration of database statements, without the wait for a connection, in seconds.",
  labels: ["statement"],
  buckets: [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5, 30],
});

export const queryErrors = counter({
  name: "skerry_database_errors_total",
  help: "Database statements that failed: because the database cannot be reached (away), or for another reason (other).",
  labels: ["reason"],
});

export const connections = observedGauge({
  name: "skerry_database_connections",
  help: "Connections to PostgreSQL by state. Waiting: calls that have no connection yet.",
  labels: ["state"],
});

export const sandboxTransitions = counter({
  name: "skerry_sandbox_transitions_total",
  help: "Changes of the state of sandboxes that this process recorded. From none: new sandboxes.",
  labels: ["from", "to"],
});

export const sandboxEnds = counter({
  name: "skerry_sandbox_ends_total",
  help: "Sandboxes that ended, by reason.",
  labels: ["reason"],
});
