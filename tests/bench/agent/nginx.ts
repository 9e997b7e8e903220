// The peer of file transfers: nginx from Debian's package, run in the same sandbox.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { asError, runCommand } from "@skerry/base";
import { unpackPackages } from "../debian-packages.ts";
import type { AgentSandbox } from "./agent-sandbox.ts";

const PORT = 8080;

/** A tar of nginx from the package archive of this host. Returns an Error if the package cannot be downloaded. */
export async function fetchNginx(): Promise<Uint8Array | Error> {
  try {
    using packages = await unpackPackages(["nginx"]);
    const tar = join(packages.root, "nginx.tar");
    await runCommand("tar", ["-cf", tar, "-C", packages.root, "usr/sbin/nginx"]);
    return readFileSync(tar);
  } catch (error) {
    return asError(error);
  }
}

/** Starts nginx, which serves `root` and stores files by PUT. Returns its port. */
export async function startNginx(sandbox: AgentSandbox, tar: Uint8Array, root: string): Promise<number> {
  await sandbox.sdk.files.write([
    { path: "/tmp/nginx.tar", data: new Blob([new Uint8Array(tar)]) },
    { path: "/tmp/nginx.conf", data: configuration(root) },
  ]);
  await sandbox.shell("mkdir -p /opt/nginx/temp && tar -xf /tmp/nginx.tar -C /opt/nginx && chmod 777 /opt/nginx/temp");
  await sandbox.shell("/opt/nginx/usr/sbin/nginx -e /tmp/nginx-error.log -c /tmp/nginx.conf");
  return PORT;
}

// The defaults, except for the settings that large files need.
function configuration(root: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `  ${name}_temp_path /opt/nginx/temp/${name};`);
  return `user root;
worker_processes auto;
pid /tmp/nginx.pid;
events { worker_connections 128; }
http {
  access_log off;
  sendfile on;
  client_max_body_size 0;
${temporary.join("\n")}
  server {
    listen ${PORT};
    root ${root};
    location / { dav_methods PUT; }
  }
}
`;
}
