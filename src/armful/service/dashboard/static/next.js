// What to do next, where nothing has been decided yet.
import { copyable, curl } from "./commands.js";
import { byId, element, prose } from "./dom.js";
import { fetchWithKey } from "./key.js";
import { resolve } from "./schema.js";

const PATH = "/v1/decisions";

// A command that asks for a decision, where this server decides; how to start one that does, elsewhere.
export async function showNext({ kind, decisions, campaign }) {
  const place = byId("next-steps");
  if (kind === "campaign" || decisions || place.dataset.campaign === campaign) return;
  place.dataset.campaign = campaign;
  place.replaceChildren(...(await steps().catch(() => withoutService(campaign))));
}

const withoutService = (campaign) => [element("p", {}, ...prose(`Start the service with \`armful serve ${campaign}\`; its own page has a command that asks for a decision.`))];

async function steps() {
  if (byId("docs-link").hidden) throw new Error("This server has no interface.");
  const answer = await fetchWithKey("openapi.json");
  if (!answer.ok) throw new Error(answer.statusText);
  const root = await answer.json();
  const operation = root.paths[PATH].post;
  const [type, body] = Object.entries(resolve(root, operation.requestBody).content)[0];
  const command = curl(root, { path: PATH, method: "post", ...operation }, [], type, body);
  return [
    element("p", {}, ...prose("Ask for a first decision, and put your own ids, and features or columns, into it. Where the service has keys, put one in the place of `KEY`; elsewhere leave out that line.")),
    copyable(command, `POST ${PATH}`),
    element("p", {}, "Then send the rewards of what was chosen: ", element("a", { href: "docs" }, "the HTTP interface"), " has every route with a command to copy."),
  ];
}
