import { DEFAULT_TAG, type Snapshot, type SnapshotPage, type SnapshotRepository, type Team } from "@skerry/store";
import { type Page, pageOf } from "../page.ts";
import type { TemplateReference } from "../templates/reference.ts";
import type { TemplateService } from "../templates/template-service.ts";

export interface SnapshotQuery extends SnapshotPage {
  /** Only snapshots of this sandbox. */
  readonly sandboxId: string | undefined;
  /** Only the snapshot of this name; the build of its tag, or the latest one when `hasTag` is false. */
  readonly named: { readonly reference: TemplateReference; readonly hasTag: boolean } | undefined;
}

/** Finds snapshots. Taking one is an operation on its sandbox (`SandboxService.snapshot`), deleting one is `TemplateService.delete`. */
export class SnapshotService {
  readonly #snapshots: SnapshotRepository;
  readonly #templates: TemplateService;
  constructor(deps: { readonly snapshots: SnapshotRepository; readonly templates: TemplateService }) {
    this.#snapshots = deps.snapshots;
    this.#templates = deps.templates;
  }

  /** A team's snapshots, newest first. */
  async list(team: Team, { sandboxId, named, limit, after }: SnapshotQuery): Promise<Page<Snapshot>> {
    const template = named && (await this.#templates.find(team, named.reference));
    if (named && template?.teamId !== team.id) return { items: [], last: undefined };
    const tag = named && (named.reference.tag ?? (named.hasTag ? DEFAULT_TAG : undefined));
    const filter = {
      teamId: team.id,
      ...(sandboxId === undefined ? {} : { sourceSandboxId: sandboxId }),
      ...(template === undefined ? {} : { templateId: template.id }),
      ...(tag === undefined ? {} : { tag }),
    };
    return pageOf(await this.#snapshots.list(filter, { limit: limit + 1, ...(after ? { after } : {}) }), limit);
  }

  /** The snapshot that a request with this build's id made; undefined when it made none. */
  async findOfBuild(buildId: string): Promise<Snapshot | undefined> {
    return await this.#snapshots.findOfBuild(buildId);
  }
}
