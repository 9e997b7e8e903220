/** Every type of event, and when it is recorded. A test compares docs/events.md with this list. */
export const EVENT_TYPES = {
  "sandbox.lifecycle.created": "The sandbox is up.",
  "sandbox.lifecycle.paused": "The sandbox is paused, by a request, at its timeout, or because it ended by itself and its disk was kept.",
  "sandbox.lifecycle.resumed": "The paused sandbox runs again.",
  "sandbox.lifecycle.updated": "The timeout or the network rules changed.",
  "sandbox.lifecycle.checkpointed": "A snapshot of the sandbox was taken.",
  "sandbox.lifecycle.killed": "The sandbox is over.",
  "template.lifecycle.created": "A template has its first build or snapshot.",
  "template.lifecycle.updated": "The visibility or the tags changed.",
  "template.lifecycle.deleted": "The template was deleted.",
  "build.lifecycle.created": "A build was requested.",
  "build.lifecycle.started": "The build was started: it is queued.",
  "build.lifecycle.ready": "Sandboxes can be started from the build.",
  "build.lifecycle.failed": "The build failed, or was cancelled.",
  "key.lifecycle.created": "The team has a new API key.",
  "key.lifecycle.updated": "The key was renamed.",
  "key.lifecycle.deleted": "The key was deleted: it is refused from now on.",
  "member.lifecycle.created": "A user became a member of the team.",
  "member.lifecycle.updated": "The member has another role.",
  "member.lifecycle.deleted": "The user is no longer a member.",
  "secret.lifecycle.created": "The team has a new secret.",
  "secret.lifecycle.updated": "The secret has a new value.",
  "secret.lifecycle.deleted": "The secret was deleted.",
  "volume.lifecycle.created": "The team has a new volume.",
  "volume.lifecycle.deleted": "The volume was deleted: its files are removed in the background.",
} as const satisfies Readonly<Record<string, string>>;

export type EventType = keyof typeof EVENT_TYPES;

export function isEventType(text: string): text is EventType {
  return Object.hasOwn(EVENT_TYPES, text);
}
