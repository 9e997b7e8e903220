import { existsSync } from "node:fs";

/** Variables that the subprocesses of the set-up inherit: paths, and how to reach the network. */
const PASSED =
  /^(HOME|TMPDIR|TERM|https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|SSL_CERT_FILE|SSL_CERT_DIR|XDG_RUNTIME_DIR|REGISTRY_AUTH_FILE|DOCKER_CONFIG|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|NPM_CONFIG_.*|npm_config_.*|PIP_.*|GO(PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE|INSECURE|AUTH))$/;

export function toolEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const passed = Object.entries(process.env).filter(
    (entry): entry is [string, string] => PASSED.test(entry[0]) && entry[1] !== undefined && !isGone(entry[0], entry[1]),
  );
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
    ...Object.fromEntries(passed),
    LANG: "C.UTF-8",
    LC_ALL: "C.UTF-8",
    ...extra,
  };
}

/** A shell can still have the variables of `./skerry env` after `down --purge` deleted their files, and curl fails without the file. */
const isGone = (name: string, value: string) => /^(SSL_CERT_FILE|NODE_EXTRA_CA_CERTS)$/.test(name) && value !== "" && !existsSync(value);
