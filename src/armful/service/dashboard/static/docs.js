// Shows openapi.json: routes, parameters, schemas, examples and commands to copy.
import { copyable, curl } from "./commands.js";
import { byId, element, prose, setProse, setText, show } from "./dom.js";
import { detailOf, fetchWithKey } from "./key.js";
import { exampleOf, nameOfType, resolve } from "./schema.js";
import { sentence } from "./words.js";

const METHODS = ["get", "put", "post", "delete", "patch"];
const DEEPEST = 6;

async function start() {
  const answer = await fetchWithKey("openapi.json");
  if (!answer.ok) throw new Error(await detailOf(answer));
  const document_ = await answer.json();
  document.title = `${document_.info.title} · armful`;
  setText(byId("title"), document_.info.title);
  setText(byId("version"), `HTTP interface · version ${document_.info.version} · OpenAPI ${document_.openapi}`);
  setProse(byId("description"), document_.info.description ?? "");
  const all = Object.entries(document_.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, shared: item.parameters ?? [], ...item[method] })));
  const idOf = ({ method, path }) => `${method}-${path.replace(/[^a-zA-Z0-9]+/g, "-")}`;
  byId("routes").replaceChildren(...all.map((each) =>
    element("li", {}, element("a", { href: `#${idOf(each)}` }, methodOf(each.method), element("span", {}, each.path)))));
  byId("operations").replaceChildren(...all.map((each) => operation(document_, each, idOf(each))));
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

const methodOf = (method) => element("span", { class: "method", "data-method": method }, method);

function operation(root, each, id) {
  const title = `${id}-title`;
  const parts = [element("h2", { id: title }, methodOf(each.method), element("span", {}, each.path))];
  if (each.summary) parts.push(element("p", {}, ...prose(`${each.summary}.`.replace(/\.\.$/, "."))));
  if (each.description) parts.push(element("p", { class: "quiet" }, ...prose(each.description)));
  const parameters = [...each.shared, ...(each.parameters ?? [])].map((one) => resolve(root, one));
  if (parameters.length) parts.push(element("h3", {}, "Parameters"), element("ul", { class: "schema" }, ...parameters.map((one) => parameter(root, one))));
  const [type, body] = Object.entries(resolve(root, each.requestBody ?? {}).content ?? {})[0] ?? [];
  if (body) parts.push(element("h3", {}, "Body"), element("p", { class: "quiet" }, element("code", {}, type)), schemaOf(root, body.schema));
  parts.push(element("h3", {}, "Example"), copyable(curl(root, each, parameters, type, body), `${each.method} ${each.path}`));
  parts.push(element("h3", {}, "Answers"), element("ul", { class: "responses" },
    ...Object.entries(each.responses ?? {}).map(([status, answer]) => response(root, status, resolve(root, answer), `${each.method} ${each.path}`))));
  return element("section", { class: "operation", id, "aria-labelledby": title }, ...parts);
}

function parameter(root, { name, in: where, required, schema = {}, description }) {
  return element("li", {}, element("span", { class: "name" }, name),
    element("span", { class: "type" }, `${nameOfType(root, schema)}, in the ${where}`), required ? element("span", { class: "needed" }, "required") : null,
    description ? element("span", { class: "about" }, ...prose(description)) : null);
}

function response(root, status, answer, label) {
  const good = status.startsWith("2");
  const head = [element("span", { class: "status", "data-good": String(good) }, status), answer.description ?? ""];
  const [type, content] = Object.entries(answer.content ?? {})[0] ?? [];
  if (!content?.schema) return element("li", {}, ...head);
  const example = content.example ?? exampleOf(root, content.schema);
  return element("li", {}, element("details", { open: good }, element("summary", {}, ...head),
    element("p", { class: "quiet" }, element("code", {}, type)), schemaOf(root, content.schema),
    good && type.includes("json") ? element("pre", { tabindex: "0", role: "region", "aria-label": `Answer ${status} of ${label}` }, JSON.stringify(example, null, 2)) : null));
}

// The fields of an object as a list, those of objects in it behind a summary.
function schemaOf(root, schema, depth = 0) {
  const plain = resolve(root, schema ?? {});
  const fields = Object.entries(plain.properties ?? {});
  if (!fields.length) {
    const some = choicesOf(plain);
    if (!some) return element("p", { class: "quiet" }, nameOfType(root, schema ?? {}));
    return element("ul", { class: "schema" }, ...some.map((one) => field(root, "", one, false, depth)));
  }
  const required = new Set(plain.required ?? []);
  return element("ul", { class: "schema" }, ...fields.map(([name, one]) => field(root, name, one, required.has(name), depth)));
}

const choicesOf = (schema) => schema.anyOf ?? schema.oneOf;

function field(root, name, schema, needed, depth) {
  const about = schema.description ?? resolve(root, schema).description;
  const head = [
    name ? element("span", { class: "name" }, name) : null, element("span", { class: "type" }, nameOfType(root, schema)),
    needed ? element("span", { class: "needed" }, "required") : null,
    about ? element("span", { class: "about" }, ...prose(about)) : null,
  ];
  const inner = depth < DEEPEST ? innerOf(root, schema) : [];
  if (!inner.length) return element("li", {}, ...head);
  const lists = inner.map((one) => schemaOf(root, one, depth + 1));
  return element("li", {}, element("details", { open: depth < 1 }, element("summary", {}, ...head), ...lists));
}

// The objects that a field holds: itself, its items, or its choices.
function innerOf(root, schema) {
  const plain = resolve(root, schema);
  if (plain.properties) return [plain];
  if (plain.items) return innerOf(root, plain.items);
  return (choicesOf(plain) ?? []).flatMap((one) => innerOf(root, one));
}

start().catch((error) => {
  setProse(byId("trouble"), error instanceof TypeError ? "The server does not answer." : sentence(error.message));
  show(byId("trouble"), true);
});
