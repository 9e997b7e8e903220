import { startRunServices } from "@skerry/testkit/run-services/services";
import type { TestProject } from "vitest/node";

/** Vitest's global set-up, and by its result the tear-down. Nothing is started before a test asks. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startRunServices();
  project.provide("runServices", services.url);
  return async () => await services[Symbol.asyncDispose]();
}
