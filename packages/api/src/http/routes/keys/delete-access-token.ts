import { Type } from "typebox";
import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ID_NOT_FOUND, idNotFound, uuidOf } from "./key-bodies.ts";

export const deleteAccessToken = defineOperation({
  id: "deleteAccessToken",
  method: "DELETE",
  path: "/access-tokens/{accessTokenID}",
  tag: "teams",
  summary: "Delete an access token",
  description: "Deletes a token of the calling user. When the answer arrives, no process accepts it any more.",
  auth: ["accessToken"],
  scope: "account:write",
  params: Type.Object({ accessTokenID: Type.String({ description: "The token's id." }) }),
  responses: { 204: { description: "The token is deleted." }, ...failures(), 404: ID_NOT_FOUND },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const id = uuidOf(params.accessTokenID, "access token");
    return (await services.keys.removeToken(userOf(caller), id)) ? { status: 204 } : idNotFound();
  },
});
