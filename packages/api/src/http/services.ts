import type { BuildService } from "../builds/build-service.ts";
import type { BuildUploads } from "../builds/uploads.ts";
import type { IdempotentRequests } from "../idempotency/idempotent-requests.ts";
import type { KeyService } from "../keys/key-service.ts";
import type { LinkService } from "../links/link-service.ts";
import type { NodeService } from "../nodes/node-service.ts";
import type { SandboxService } from "../sandboxes/service.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import type { SnapshotService } from "../snapshots/snapshot-service.ts";
import type { TeamService } from "../teams/team-service.ts";
import type { TagService } from "../templates/tag-service.ts";
import type { TemplateService } from "../templates/template-service.ts";
import type { Encoding } from "./output/encode-sandbox.ts";

/** What handlers work with: one service per noun. A handler reads the request, calls one service method, and encodes the result. */
export interface ApiServices {
  readonly sandboxes: SandboxService;
  readonly snapshots: SnapshotService;
  readonly templates: TemplateService;
  readonly builds: BuildService;
  readonly uploads: BuildUploads;
  readonly tags: TagService;
  readonly teams: TeamService;
  readonly keys: KeyService;
  readonly secrets: SecretService;
  readonly links: LinkService;
  readonly nodes: NodeService;
  /** The id of the cluster of this database. */
  readonly clusterId: string;
  readonly idempotency: IdempotentRequests;
  readonly encoding: Encoding;
}
