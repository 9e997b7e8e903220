// Writes spec/platform.openapi.json from the operations. A test compares the two.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createOpenApi, OPERATIONS } from "./src/index.ts";

const path = join(import.meta.dirname, "../../spec/platform.openapi.json");
await writeFile(path, `${JSON.stringify(createOpenApi(OPERATIONS), undefined, 2)}\n`);
