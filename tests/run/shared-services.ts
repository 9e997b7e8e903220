import { startSharedServices } from "@skerry/testkit/shared/services";
import type { TestProject } from "vitest/node";

/** Vitest's global set-up, and by its result the tear-down. Nothing is started before a test asks. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startSharedServices();
  project.provide("sharedServices", services.url);
  return async () => await services[Symbol.asyncDispose]();
}
