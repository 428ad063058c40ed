// Building and changing elements; what has not changed is not touched, so that focus and selection stay.
export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined));
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function show(target, visible) {
  if (target.hidden === visible) target.hidden = !visible;
}

// A sentence in which what stands between backquotes is code.
export function prose(text) {
  const set = (part) => part.replace(/(\d) %/g, "$1\u00a0%").replace(/(^|[\s(])-(?=\d)/g, "$1\u2212");
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : set(part)));
}

export function setProse(target, text) {
  if (target.dataset.text === text) return;
  target.dataset.text = text;
  target.replaceChildren(...prose(text));
}

// Columns are [title, isNumber, class]; rows are lists of texts.
export function fillTable(table, columns, rows) {
  const titles = columns.map(([title]) => title).join("\n");
  if (table.dataset.titles !== titles) {
    table.dataset.titles = titles;
    const cells = columns.map(([title, ...looks]) => element("th", { scope: "col", class: classOf(...looks) }, title));
    table.replaceChildren(element("thead", {}, element("tr", {}, ...cells)), element("tbody"));
  }
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, i) => {
    const line = body.rows[i] ?? body.appendChild(emptyRow(columns));
    row.forEach((text, j) => setText(line.cells[j], text));
  });
}

const classOf = (isNumber, more) => [isNumber && "number", more].filter(Boolean).join(" ") || null;

function emptyRow(columns) {
  return element("tr", {}, ...columns.map(([, ...looks], j) => (j === 0 ? element("th", { scope: "row" }) : element("td", { class: classOf(...looks) }))));
}

// Children of a list by key: kept where they are, made where they are new, removed where they are gone.
export function fillList(list, items, key, make, update) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const wanted = new Set(items.map((item) => String(key(item))));
  for (const [name, child] of known) if (!wanted.has(name)) child.remove();
  let before = list.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = known.get(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    update(child, item);
    if (child === before) before = before.nextElementSibling;
    else list.insertBefore(child, before);
  }
}
