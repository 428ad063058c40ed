// Commands to copy: a request of openapi.json as one for curl.
import { byId, element, setText } from "./dom.js";
import { exampleOf } from "./schema.js";

export function curl(root, { method, path, security }, parameters, type, body) {
  const given = (one) => one.example ?? exampleOf(root, one.schema ?? {}, one.name);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(given(parameters.find((one) => one.name === name) ?? { name })));
  const query = parameters.filter((one) => one.in === "query" && one.required).map((one) => `${one.name}=${encodeURIComponent(given(one))}`);
  const address = new URL(`.${filled}${query.length ? `?${query.join("&")}` : ""}`, document.baseURI).href;
  const lines = [`curl${method === "get" ? "" : ` -X ${method.toUpperCase()}`} ${quoted(address)}`];
  if (security?.length) lines.push(`-H ${quoted("Authorization: Bearer KEY")}`);
  if (body) {
    const example = body.example ?? Object.values(body.examples ?? {})[0]?.value ?? exampleOf(root, body.schema);
    lines.push(`-H ${quoted(`Content-Type: ${type}`)}`, `-d ${quoted(written(example))}`);
  }
  return lines.join(" \\\n  ");
}

// JSON with each list of numbers on one line; in a text there are no ends of lines.
const written = (value) => JSON.stringify(value, null, 2).replace(/\[\n[-+.,\deE\s]+\]/g, (list) => list.replace(/\s+/g, " ").replace("[ ", "[").replace(" ]", "]"));

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

export function copyable(text, label) {
  const button = element("button", { type: "button", "aria-label": `Copy the example of ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    const done = await copy(text);
    setText(button, done ? "Copied" : "Select it");
    setText(byId("announcement"), done ? "Copied." : "Copying is not allowed here; select the text.");
    setTimeout(() => { setText(button, "Copy"); setText(byId("announcement"), ""); }, 2500);
  });
  return element("div", { class: "example" }, button, element("pre", { tabindex: "0", role: "region", "aria-label": `Example of ${label}` }, text));
}

// navigator.clipboard is there on this machine and by HTTPS only.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.body.appendChild(element("textarea", { class: "hidden" }));
    area.value = text;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
