// The metrics of the API. Those that are read from the database describe the whole platform, so every API process shows the same values.

import { counter, gauge, histogram, observedGauge } from "@skerry/telemetry";

export const requests = counter({
  name: "skerry_api_requests_total",
  help: "Requests to the API by operation and status. 499: the caller went away before the answer.",
  labels: ["operation", "code"],
});

export const requestDuration = histogram({
  name: "skerry_api_request_duration_seconds",
  help: "Duration of requests to the API until the whole answer was sent, in seconds. Streams are left out.",
  labels: ["operation"],
});

export const activeRequests = gauge({
  name: "skerry_api_requests_active",
  help: "Requests to the API that have no complete answer yet.",
});

export const nodes = observedGauge({
  name: "skerry_api_nodes",
  help: "Nodes that this API process knows, by whether they answer.",
  labels: ["state"],
});

export const placedSandboxes = observedGauge({
  name: "skerry_placed_sandboxes",
  help: "Sandboxes that occupy a node, by node and state (starting, running).",
  labels: ["node", "state"],
});

export const placedCpus = observedGauge({
  name: "skerry_placed_cpus",
  help: "CPUs of the sandboxes that occupy a node.",
  labels: ["node"],
});

export const placedMemory = observedGauge({
  name: "skerry_placed_memory_bytes",
  help: "Memory sizes of the sandboxes that occupy a node, in bytes.",
  labels: ["node"],
});

export const builds = observedGauge({
  name: "skerry_builds",
  help: "Builds that wait for a node (queued), and builds that a node carries out (running).",
  labels: ["state"],
});

export const eventLag = observedGauge({
  name: "skerry_event_lag_seconds",
  help: "Age of the oldest event that readers cannot see yet, in seconds.",
});

export const eventsNumbered = counter({
  name: "skerry_events_total",
  help: "Events that this process made visible to readers.",
});

export const webhookPending = observedGauge({
  name: "skerry_webhook_pending_deliveries",
  help: "Deliveries of enabled webhooks that failed and will be tried again.",
});

export const webhookBehind = observedGauge({
  name: "skerry_webhook_behind_events",
  help: "Events that were not handed over to the enabled webhooks of their team yet.",
});

export const webhookAttempts = counter({
  name: "skerry_webhook_attempts_total",
  help: "Attempts to deliver an event to a webhook, by result.",
  labels: ["result"],
});

export const webhookAttemptDuration = histogram({
  name: "skerry_webhook_attempt_duration_seconds",
  help: "How long endpoints of webhooks take to answer, in seconds.",
});

export const webhookDeadLetters = counter({
  name: "skerry_webhook_dead_letters_total",
  help: "Events that were given up for a webhook.",
});
