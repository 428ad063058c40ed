// JSON Schema as OpenAPI 3.1 has it: references, names of types, examples.
const DEEPEST = 8;

// What a reference points to; anything else as it is.
export function resolve(root, schema) {
  let found = schema;
  for (let i = 0; i < DEEPEST && typeof found?.$ref === "string"; i++) {
    const target = found.$ref.slice(2).split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    const { $ref, ...beside } = found;
    found = { ...target, ...beside };
  }
  return found ?? {};
}

const choicesOf = (schema) => schema.anyOf ?? schema.oneOf;

// "list of text", "number or nothing", "DecisionRequest"
export function nameOfType(root, schema, depth = 0) {
  const words = { string: "text", integer: "whole number", number: "number", boolean: "true or false", null: "null", object: "object", array: "list" };
  if (depth > DEEPEST) return "…";
  const plain = resolve(root, schema);
  const choices = choicesOf(plain);
  if (choices) return oneOf([...new Set(choices.map((one) => nameOfType(root, one, depth + 1)))]);
  if ("const" in plain) return JSON.stringify(plain.const);
  if (plain.enum) return plain.enum.map((value) => JSON.stringify(value)).join(" or ");
  const types = [plain.type ?? []].flat();
  if (types.includes("array")) {
    const items = plain.items || plain.prefixItems?.[0];
    return items ? `list of ${grouped(nameOfType(root, items, depth + 1))}` : "list";
  }
  if (types.includes("object") && plain.additionalProperties && typeof plain.additionalProperties === "object" && Object.keys(plain.additionalProperties).length) {
    return `object of ${grouped(nameOfType(root, plain.additionalProperties, depth + 1))}`;
  }
  if (types.includes("object") && plain.title) return plain.title;
  return types.map((type) => words[type] ?? type).join(" or ") || "anything";
}

// "null" comes last; all plain kinds together are "any value".
function oneOf(names) {
  const plain = ["text", "whole number", "number", "true or false"];
  const rest = names.filter((name) => name !== "null" && !plain.includes(name));
  const known = plain.every((name) => names.includes(name)) ? ["any value"] : plain.filter((name) => names.includes(name));
  return [...known, ...rest, ...(names.includes("null") ? ["null"] : [])].join(" or ");
}

const grouped = (name) => (name.includes(" or ") && name !== "true or false" ? `(${name})` : name);

// An example: the one that is given, else made from the types, without what is optional and null.
export function exampleOf(root, schema, name = "", depth = 0) {
  const plain = resolve(root, schema);
  if ("example" in plain) return plain.example;
  if (plain.examples?.length) return plain.examples[0];
  if ("const" in plain) return plain.const;
  if (plain.enum) return plain.enum[0];
  if (depth > DEEPEST) return null;
  const choices = choicesOf(plain);
  if (choices) return exampleOf(root, choices.find((one) => resolve(root, one).properties) ?? choices.find((one) => resolve(root, one).type !== "null"), name, depth + 1);
  const [type] = [plain.type ?? (plain.properties ? "object" : "string")].flat();
  if (type === "object") {
    const fields = Object.entries(plain.properties ?? {}).filter(([field, one]) => (plain.required ?? []).includes(field) || !("default" in one) || depth < 1);
    if (!fields.length && typeof plain.additionalProperties === "object") return { name: exampleOf(root, plain.additionalProperties, "", depth + 1) };
    return Object.fromEntries(fields.map(([field, one]) => [field, exampleOf(root, one, field, depth + 1)]));
  }
  if (type === "array") return [exampleOf(root, plain.items || plain.prefixItems?.[0] || {}, name, depth + 1)];
  if (type === "boolean") return plain.default ?? false;
  if (type === "integer" || type === "number") return plain.default ?? Math.max(plain.minimum ?? 1, plain.type === "integer" ? 1 : 0.5);
  if (type === "null") return null;
  return plain.default ?? (/(^|_)id$/.test(name) && plain.pattern?.includes("[1-9]") ? "17" : name || "text");
}
