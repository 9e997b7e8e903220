import { randomUUID } from "node:crypto";
import type { RegistryCredentials } from "./build-spec.ts";

/**
 * Credentials of registries, from the request that starts a build until its node has them. They are in the memory of this process only: a
 * build whose process ends before that fails.
 */
export class BuildCredentials {
  readonly #kept = new Map<string, RegistryCredentials>();

  keep(credentials: RegistryCredentials): string {
    const id = randomUUID();
    this.#kept.set(id, credentials);
    return id;
  }

  find(id: string): RegistryCredentials | undefined {
    return this.#kept.get(id);
  }

  drop(id: string | undefined): void {
    if (id !== undefined) this.#kept.delete(id);
  }
}
