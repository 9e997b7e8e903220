// Requests about builds that several tests send.

import { waitUntil } from "@skerry/testkit/wait-until";
import { expect } from "vitest";
import type { ApiHarness, CallOptions } from "./api-harness.ts";

export interface Ids {
  readonly templateID: string;
  readonly buildID: string;
}

export async function requestBuild(api: ApiHarness, name: string, body: object = {}, options: CallOptions = {}): Promise<Ids> {
  const answer = await api.call("POST", "/v3/templates", { ...options, body: { name, ...body } });
  expect(answer, answer.text).toMatchObject({ status: 202 });
  const { templateID, buildID } = answer.body;
  return { templateID, buildID };
}

export function trigger(api: ApiHarness, { templateID, buildID }: Ids, body: object = { fromImage: "debian" }, options: CallOptions = {}) {
  return api.call("POST", `/v2/templates/${templateID}/builds/${buildID}`, { ...options, body });
}

export async function startBuild(api: ApiHarness, name: string, body?: object, options: CallOptions = {}): Promise<Ids> {
  const ids = await requestBuild(api, name, {}, options);
  const answer = await trigger(api, ids, body, options);
  expect(answer, answer.text).toMatchObject({ status: 202 });
  return ids;
}

export async function statusOf(api: ApiHarness, { templateID, buildID }: Ids, query = "", options: CallOptions = {}) {
  return (await api.call("GET", `/templates/${templateID}/builds/${buildID}/status${query}`, options)).body;
}

export async function ended(api: ApiHarness, ids: Ids, options: CallOptions = {}) {
  await waitUntil("the build has ended", async () => ["ready", "error"].includes((await statusOf(api, ids, "?limit=0", options)).status));
  return await statusOf(api, ids, "", options);
}

export async function begun(api: ApiHarness, { buildID }: Ids): Promise<void> {
  await waitUntil("a node has the build", () => api.nodes.some(({ builds }) => builds.held.has(buildID)));
}
