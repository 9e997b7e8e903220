import type { Page } from "./refusal.ts";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] as string);
}

/** Renders a complete page without scripts and external resources. */
export function renderPage(status: number, page: Page): string {
  const title = escapeHtml(page.title);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:38rem;margin:20vh auto 0;padding:0 1.5rem;color:#1c2430;background:#f7f8fa;overflow-wrap:anywhere}
h1{font-size:1.4rem}small{color:#667}
@media (prefers-color-scheme:dark){body{color:#dfe4ea;background:#14181d}}
</style>
</head>
<body>
<h1>${title}</h1>
<p>${escapeHtml(page.detail)}</p>
<small>${status}</small>
</body>
</html>
`;
}
