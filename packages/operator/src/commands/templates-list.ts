import type { OperatorContext } from "../context.ts";
import { PlatformClient } from "../templates/platform-client.ts";
import { formatTable } from "../terminal/table.ts";

interface ListedTemplate {
  readonly templateID: string;
  readonly aliases: readonly string[];
  readonly names: readonly string[];
  readonly buildStatus: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly createdAt: string;
  readonly public: boolean;
}

interface TemplateTag {
  readonly tag: string;
}

const COLUMNS = ["NAME", "TAGS", "STATE", "CPUS", "MEMORY", "DISK", "CREATED", "PUBLIC", "ID"] as const;

/** Prints the templates of the data folder's team, newest first. */
export async function listTemplates(context: OperatorContext, options: { data?: string; json?: boolean }): Promise<void> {
  const client = await PlatformClient.open(context, options.data);
  const templates = await client.list<ListedTemplate>("/v2/templates");
  const listed = await Promise.all(templates.map(async (template) => ({ ...template, tags: await tagsOf(client, template) })));
  if (options.json) {
    process.stdout.write(`${JSON.stringify(listed, null, 2)}\n`);
    return;
  }
  process.stdout.write(formatTable([COLUMNS, ...listed.map(rowOf)]));
  if (listed.length === 0) process.stderr.write("There are no templates. To build one from a Dockerfile: ./skerry templates build NAME\n");
}

async function tagsOf(client: PlatformClient, { templateID }: ListedTemplate): Promise<readonly string[]> {
  const tags = await client.call<readonly TemplateTag[]>("GET", `/templates/${templateID}/tags`);
  return tags.map(({ tag }) => tag);
}

function rowOf(template: ListedTemplate & { readonly tags: readonly string[] }): readonly string[] {
  const { templateID, aliases, tags, buildStatus, cpuCount, memoryMB, diskSizeMB, createdAt } = template;
  const size = (mebibytes: number) => (mebibytes === 0 ? "-" : `${mebibytes} MiB`);
  return [
    aliases[0] ?? "-",
    tags.join(",") || "-",
    buildStatus,
    String(cpuCount),
    size(memoryMB),
    size(diskSizeMB),
    createdAt.slice(0, 16).replace("T", " "),
    template.public ? "yes" : "no",
    templateID,
  ];
}
