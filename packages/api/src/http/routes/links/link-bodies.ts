// What the operations on links read and answer.

import type { StoredLink } from "@skerry/store";
import { AGENT_PORT, LINK_PARAMETER } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { validationError } from "../../../errors.ts";
import type { MadeLink, NewLink } from "../../../links/link-service.ts";
import type { Confidential } from "../../operation.ts";
import { DateTime, Int32 } from "../../schemas.ts";

const MAX_LIFE_SECONDS = 30 * 24 * 3_600;
const MAX_PATH_LENGTH = 2_048;
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Printable ASCII that begins with one slash. Browsers read two slashes, and a backslash, as the beginning of another host. */
const PATH = /^\/(?![/\\])[\x21\x22\x24-\x5b\x5d-\x7e]*$/;

/** Answers are not cached, because one contains a token. */
export const CONFIDENTIAL: Confidential = { messages: {} };

const fields = {
  linkID: Type.String({ description: "The link's id." }),
  port: Int32({ description: "The port that the link leads to." }),
  path: Type.String({ description: "The page that the link opens." }),
  methods: Type.Optional(Type.Array(Type.String(), { description: "The only methods that the link permits. Absent: all." })),
  createdAt: DateTime("When the link was created."),
  expiresAt: DateTime("From this time on, the link opens nothing."),
};

export const LinkSchema = Type.Object(fields, { title: "SandboxLink" });
export const MadeLinkSchema = Type.Object(
  {
    ...fields,
    url: Type.String({ description: "The address for browsers. It contains the token." }),
    pathUrl: Type.Optional(
      Type.String({ description: "The same on the host name of the path form, if the platform has one (`SKERRY_PATH_HOST`)." }),
    ),
    token: Type.String({ description: "For programs, in the header `skerry-link-token`. No other answer contains it." }),
  },
  { title: "NewSandboxLink" },
);
export const LinkRequestSchema = Type.Object(
  {
    port: Int32({ description: "The port that the link leads to; not 49983, the agent's.", minimum: 1, maximum: 65_535 }),
    expiresIn: Int32({ description: "Seconds until the link expires; at most 30 days.", minimum: 1, maximum: MAX_LIFE_SECONDS }),
    path: Type.Optional(
      Type.String({ description: "The page that the link opens, by default `/`. The link leads to every path of the port." }),
    ),
    methods: Type.Optional(
      Type.Array(Type.Union(METHODS.map((method) => Type.Literal(method))), {
        description: "The only methods that the link permits. By default, all.",
        minItems: 1,
        maxItems: METHODS.length,
      }),
    ),
  },
  { title: "SandboxLinkRequest" },
);

/** Throws for what the schema cannot say. */
export function newLinkOf(sandboxId: string, { port, expiresIn, path = "/", methods }: Static<typeof LinkRequestSchema>): NewLink {
  if (port === AGENT_PORT) throw validationError(`body/port ${AGENT_PORT} is the agent's, which links don't open`);
  if (path.length > MAX_PATH_LENGTH || !PATH.test(path)) {
    throw validationError(
      `body/path must begin with one slash and have at most ${MAX_PATH_LENGTH} printable ASCII characters, without spaces, backslashes and #`,
    );
  }
  if (path.includes(`${LINK_PARAMETER}=`)) throw validationError(`body/path must not have the parameter ${LINK_PARAMETER}`);
  return { sandboxId, port, path, methods: methods && [...new Set(methods)], lifeMs: expiresIn * 1_000 };
}

export function encodeLink({ id, port, path, methods, createdAt, expiresAt }: StoredLink): Static<typeof LinkSchema> {
  return {
    linkID: id,
    port,
    path,
    ...(methods ? { methods: [...methods] } : {}),
    createdAt: new Date(createdAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  };
}

export function encodeMadeLink({ link, url, pathUrl, token }: MadeLink): Static<typeof MadeLinkSchema> {
  return { ...encodeLink(link), url, ...(pathUrl === undefined ? {} : { pathUrl }), token };
}
