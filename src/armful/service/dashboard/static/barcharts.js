// The charts with a name beside each mark: coefficients, quotas, positions.
import { escaped, layoutOf } from "./charts.js";

export const MOST_NAMES = 20;
export const MOST_GROUPS = 40;
const LONGEST_NAME = 34;
const LONGEST_ON_A_PHONE = 20;
const SHORTEST_COMMON = 6; // a beginning or an end in common is left out if it is so long

export function coefficientChart({ coefficients }) {
  return (colours, narrow) => {
    const some = coefficients.slice(0, MOST_NAMES).toReversed();
    const names = distinct(some.map((each) => each.name), narrow);
    return {
      traces: [{
        type: "scatter", mode: "markers", x: some.map((each) => each.value), y: names,
        marker: { color: some.map((each) => (each.low > 0 || each.high < 0 ? colours.accent : colours.card)), size: 9, line: { color: colours.accent, width: 2 } },
        error_x: {
          type: "data", symmetric: false, array: some.map((each) => each.high - each.value), arrayminus: some.map((each) => each.value - each.low),
          color: colours.accent, thickness: 1.5, width: 3,
        },
        hovertemplate: "%{y}: %{x:+.3~g}<extra></extra>",
      }],
      layout: {
        ...byName(layoutOf(colours, narrow, { x: { title: "change of the reward", showgrid: true } }), names),
        shapes: [{ type: "line", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: { color: colours.neutral, width: 1 }, layer: "below" }],
      },
      label: `Dot chart: the ${some.length} largest coefficients with their intervals. The table below has all of them.`,
    };
  };
}

// The groups that are drawn: the largest, in the order in which they came.
export function drawnGroups(quotas) {
  const largest = new Set(quotas.toSorted((a, b) => b.n - a.n).slice(0, MOST_GROUPS));
  return quotas.filter((each) => largest.has(each));
}

export function quotaChart({ quotas, what, bounded, marked }) {
  return (colours, narrow) => {
    const columns = new Set(quotas.map((each) => each.column));
    const some = drawnGroups(quotas).toReversed();
    const names = distinct(some.map((each) => (columns.size > 1 ? `${each.column}: ${each.group}` : each.group)), narrow);
    const bound = (name, word) => {
      const of = some.map((each, i) => [each, names[i]]).filter(([each]) => (each[name] ?? null) !== null && each.n > 0);
      return {
        type: "scatter", mode: "markers", x: of.map(([each]) => (each[name] * each.share) / each.n), y: of.map(([, label]) => label),
        marker: { symbol: "line-ns", size: 20, line: { color: colours.warm, width: 3 } }, customdata: of.map(([each]) => each[name]),
        hovertemplate: `%{y}: ${word} %{customdata:,}<extra></extra>`,
      };
    };
    return {
      traces: [{
        type: "bar", orientation: "h", x: some.map((each) => each.share), y: names, marker: { color: colours.accent }, width: 0.6,
        customdata: some.map((each) => each.n), hovertemplate: `%{y}: %{x:.1%}, %{customdata:,} ${what}<extra></extra>`,
      }, ...(marked ? [bound("at_least", "at least"), bound("at_most", "at most")] : [])],
      layout: byName(layoutOf(colours, narrow, { x: { tickformat: ".1~%", rangemode: "tozero", showgrid: true } }), names, 230),
      label: `Bar chart: share of each group among the chosen ${what}. The table below has the numbers${bounded ? " and the bounds" : ""}.`,
    };
  };
}

export function positionChart({ positions }) {
  return (colours, narrow) => ({
    traces: [{
      type: "bar", x: positions.map((each) => each.position), y: positions.map((each) => each.weight), marker: { color: colours.accent }, width: 0.6,
      hovertemplate: "position %{x}: %{y:.0%}<extra></extra>",
    }],
    layout: layoutOf(colours, narrow, { x: { title: "position", dtick: positions.length > 12 ? null : 1 }, y: { tickformat: ".1~%", rangemode: "tozero" }, height: 280, left: 44 }),
    label: "Bar chart: examination weight of each position. The table below has the numbers.",
  });
}

function byName(layout, names, least = 0) {
  const row = names.some((name) => name.includes("<br>")) ? 38 : 26;
  return { ...layout, height: Math.max(least, 70 + row * names.length), yaxis: { ...layout.yaxis, type: "category", showgrid: false, tickfont: { color: layout.font.color } } };
}

const cut = (name, most) => (name.length > most ? `${name.slice(0, Math.floor(most / 2) - 1)}…${name.slice(-Math.floor(most / 2))}` : name);

// A product that is too long for one line has two.
function lines(name, most) {
  const at = name.indexOf(" × ");
  return name.length > most && at > 0 ? [name.slice(0, at + 2), name.slice(at + 3)] : [name];
}

// How many characters all texts begin with.
function commonStart(texts) {
  let n = 0;
  while (n < texts[0].length && texts.every((text) => text[n] === texts[0][n])) n += 1;
  return n;
}

// Names without what all of them begin and end with, so that what tells them apart is left.
function withoutCommon(names) {
  const characters = names.map((name) => [...name]);
  const shortest = Math.min(...characters.map((name) => name.length));
  const head = Math.min(commonStart(characters), shortest - 1);
  const tail = Math.min(commonStart(characters.map((name) => name.toReversed())), shortest - 1 - head);
  const [from, to] = [head >= SHORTEST_COMMON ? head : 0, tail >= SHORTEST_COMMON ? tail : 0];
  return characters.map((name) => `${from ? "…" : ""}${name.slice(from, name.length - to).join("")}${to ? "…" : ""}`);
}

// Names for an axis: short, without mark-up, and all different, since equal ones would be one place.
export function distinct(names, narrow) {
  const most = narrow ? LONGEST_ON_A_PHONE : LONGEST_NAME;
  const shortened = (all) => all.map((name) => lines(name, most).map((text) => cut(text, most)).join("\n"));
  let short = shortened(names);
  if (new Set(short).size < new Set(names).size) short = shortened(withoutCommon(names));
  const seen = new Map(); // counted from the top of the chart, which is the end of the list
  return short.toReversed().map((name) => {
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return escaped(n === 1 ? name : `${name} (${n})`).replaceAll("\n", "<br>");
  }).toReversed();
}
