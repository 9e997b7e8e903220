import { startRunServices } from "@skerry/testkit/run-services/services";
import type { TestProject } from "vitest/node";

/** Vitest's global set-up. Returns the tear-down. Services start when the first test asks for them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startRunServices();
  project.provide("runServices", services.url);
  return async () => await services[Symbol.asyncDispose]();
}
