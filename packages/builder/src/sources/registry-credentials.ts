// What a build's caller gave for a registry, as the user and the password that registries take.

import { Secret } from "@skerry/base";
import type { RegistryCredentials } from "@skerry/layers";
import type { ImageSource } from "@skerry/wire/node";
import { ecrLogin } from "./ecr-login.privileged.ts";
import type { ImageSettings } from "./source.ts";

/** Undefined: the caller gave none. Throws BuildFailure. */
export async function registryCredentials(
  { reference: name, credentials }: ImageSource,
  options: { readonly settings: ImageSettings; readonly signal: AbortSignal },
): Promise<RegistryCredentials | undefined> {
  switch (credentials.case) {
    case "basic":
      return { username: credentials.value.username, password: new Secret(credentials.value.password) };
    case "gcp":
      // The user's name by which Google's registries take the key of a service account.
      return { username: "_json_key", password: new Secret(credentials.value.serviceAccountJson) };
    case "aws":
      return await ecrLogin({ name, credentials: credentials.value, ...options });
    case undefined:
      return undefined;
  }
}
