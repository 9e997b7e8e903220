// Helpers that the tests of watching share.

import { EventType, type FilesystemEvent } from "@skerry/wire/filesystem";
import { expect } from "vitest";
import { type AgentUnderTest, descriptorsOf } from "./agent-under-test.ts";

export interface Watch {
  readonly id: string;
  /** All events since the last call, in the form `CREATE name`. */
  poll(): Promise<string[]>;
  raw(): Promise<FilesystemEvent[]>;
  remove(): Promise<void>;
}

export interface WatchOptions {
  readonly path: string;
  readonly recursive?: boolean;
  readonly includeEntry?: boolean;
}

export async function openWatch(agent: AgentUnderTest, options: WatchOptions): Promise<Watch> {
  const { watcherId } = await agent.filesystem.createWatcher(options);
  const raw = async () => (await agent.filesystem.getWatcherEvents({ watcherId })).events;
  return {
    id: watcherId,
    raw,
    poll: async () => (await raw()).map(describeEvent),
    remove: async () => {
      await agent.filesystem.removeWatcher({ watcherId });
    },
  };
}

export function describeEvent(event: FilesystemEvent): string {
  return `${EventType[event.type]} ${event.name}`;
}

export async function uploadTo(agent: AgentUnderTest, path: string, content: string, headers: Record<string, string> = {}): Promise<void> {
  const response = await agent.fetch(`/files?path=${encodeURIComponent(path)}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream", ...headers },
    body: content,
  });
  expect(response.status).toBe(200);
}

/** The agent's inotify descriptors: one while any client watches, otherwise none. */
export function inotifyDescriptors(agent: AgentUnderTest): string[] {
  return descriptorsOf(agent.pid).filter((target) => target.includes("inotify"));
}

/** Runs `action` while the agent is stopped, so that it sees all events at once afterwards. */
export function whileStopped(agent: AgentUnderTest, action: () => void): void {
  process.kill(agent.pid, "SIGSTOP");
  try {
    action();
  } finally {
    process.kill(agent.pid, "SIGCONT");
  }
}
