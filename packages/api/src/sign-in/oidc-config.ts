import type { Role } from "@skerry/store";

/** How users of an OpenID Connect provider sign in. */
export interface OidcConfig {
  /** The provider's issuer, exactly as its tokens name it. */
  readonly issuer: string;
  /** A token must be meant for one of these. */
  readonly audiences: readonly string[];
  /** The claim with the groups of a user; a path with dots leads into objects. */
  readonly groupsClaim: string;
  /** What groups of the provider mean here. */
  readonly grants: readonly GroupGrant[];
  /** How far the provider's clock may differ, in ms. */
  readonly clockSkewMs: number;
  /** From this time after its issue a token is refused, however long it says that it is valid. */
  readonly maxTokenAgeMs: number;
}

/** Members of the group have the role in the team. */
export interface GroupGrant {
  readonly group: string;
  readonly teamSlug: string;
  readonly role: Role;
}
