// What a build's caller gave for a registry, as the user and the password that registries take.

import { Secret } from "@skerry/base";
import type { RegistryCredentials } from "@skerry/layers";
import type { ImageSource } from "@skerry/wire/node";
import type { ImageSettings } from "./source.ts";

export async function registryCredentials(source: ImageSource, _settings: ImageSettings): Promise<RegistryCredentials | undefined> {
  const { credentials } = source;
  switch (credentials.case) {
    case "basic":
      return { username: credentials.value.username, password: new Secret(credentials.value.password) };
    case "gcp":
      // The user's name by which Google's registries take the key of a service account.
      return { username: "_json_key", password: new Secret(credentials.value.serviceAccountJson) };
    case "aws":
      throw new Error("not yet");
    case undefined:
      return undefined;
  }
}
