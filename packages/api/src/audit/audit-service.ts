import type { AuditFilter, AuditLine, AuditPage, AuditPart, AuditRepository } from "@skerry/store";
import type { AuditTrail } from "./audit-trail.ts";

/** Lines that an export reads at a time. */
const EXPORT_PAGE = 500;
/** Parts between two checks of the caller's credentials. */
const PARTS_UNCHECKED = 50;

export interface ExportRequest {
  readonly filter: AuditFilter;
  readonly order: AuditPage["order"];
  /** Throws when the caller may not read any more. */
  readonly recheck: () => Promise<unknown>;
  readonly signal: AbortSignal;
}

export class AuditService {
  readonly #audit: AuditRepository;
  readonly #trail: AuditTrail;
  constructor(deps: { readonly audit: AuditRepository; readonly trail: AuditTrail }) {
    this.#audit = deps.audit;
    this.#trail = deps.trail;
  }

  /** Contains what this process answered before. */
  async list(filter: AuditFilter, page: AuditPage): Promise<AuditPart> {
    await this.#trail.flush();
    return await this.#audit.list(filter, page);
  }

  /** Every line, as fast as the reader takes them. */
  async *export({ filter, order, recheck, signal }: ExportRequest): AsyncGenerator<AuditLine> {
    await this.#trail.flush();
    let after: number | undefined;
    for (let part = 1; !signal.aborted; part++) {
      const { items, next } = await this.#audit.list(filter, { order, limit: EXPORT_PAGE, ...(after === undefined ? {} : { after }) });
      yield* items;
      if (next === undefined) return;
      after = next;
      if (part % PARTS_UNCHECKED === 0) await recheck();
    }
  }
}
