import type { Selectable } from "kysely";
import { type EventType, isEventType } from "../events/event-type.ts";
import type { SealedValue } from "../secrets.ts";
import type { WebhookDeliveryTable, WebhookTable } from "../tables.ts";

export interface NewWebhook {
  readonly id: string;
  readonly teamId: string;
  readonly name: string;
  readonly url: string;
  /** Undefined: all types. */
  readonly types: readonly EventType[] | undefined;
  readonly enabled: boolean;
  readonly createdAt: number;
}

export interface Webhook extends NewWebhook {
  readonly updatedAt: number;
  /** Why the platform disabled it. */
  readonly disabledReason: string | undefined;
  /** The events up to this sequence were delivered, or have a delivery. */
  readonly cursor: number;
  /** Failures in a row, without a success of any delivery between them. */
  readonly failures: number;
  readonly failingSince: number | undefined;
  /** Nothing is sent before this time. */
  readonly retryAt: number | undefined;
  readonly lastError: string | undefined;
  readonly lastDeliveredAt: number | undefined;
  /** Events that were deleted before they could be delivered. */
  readonly skipped: number;
}

export type OwnedWebhook = Webhook & SealedValue;

/** A delivery that has failed. `dead`: it is not tried again by itself. */
export interface Delivery {
  readonly sequence: number;
  readonly state: "pending" | "dead";
  readonly attempts: number;
  readonly firstAt: number;
  readonly nextAt: number;
  readonly error: string;
}

export function webhookFrom(row: Selectable<WebhookTable>): OwnedWebhook {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    url: row.url,
    types: row.types === null ? undefined : (JSON.parse(row.types) as string[]).filter(isEventType),
    enabled: row.enabled === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    disabledReason: row.disabled_reason ?? undefined,
    cursor: row.cursor,
    failures: row.failures,
    failingSince: row.failing_since ?? undefined,
    retryAt: row.retry_at ?? undefined,
    lastError: row.last_error ?? undefined,
    lastDeliveredAt: row.last_delivered_at ?? undefined,
    skipped: row.skipped,
    sealed: row.sealed,
    keyId: row.key_id,
  };
}

export function webhookRow(hook: NewWebhook & SealedValue & { readonly cursor: number }): Selectable<WebhookTable> {
  return {
    id: hook.id,
    team_id: hook.teamId,
    name: hook.name,
    url: hook.url,
    types: hook.types === undefined ? null : JSON.stringify(hook.types),
    enabled: Number(hook.enabled),
    disabled_reason: null,
    sealed: hook.sealed,
    key_id: hook.keyId,
    cursor: hook.cursor,
    failures: 0,
    failing_since: null,
    retry_at: null,
    last_error: null,
    last_delivered_at: null,
    skipped: 0,
    owner: null,
    lease_until: 0,
    created_at: hook.createdAt,
    updated_at: hook.createdAt,
  };
}

export function deliveryFrom(row: Selectable<WebhookDeliveryTable>): Delivery {
  return {
    sequence: row.sequence,
    state: row.state as Delivery["state"],
    attempts: row.attempts,
    firstAt: row.first_at,
    nextAt: row.next_at,
    error: row.error,
  };
}
