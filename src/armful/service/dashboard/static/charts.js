// The charts: what plotly draws from the data, in the colours of the theme.
import { byId } from "./dom.js";
import { local } from "./words.js";

const ROLES = ["ink", "quiet", "card", "grid", "accent", "accent-soft", "warm", "warm-soft", "neutral", "neutral-soft"];
const CONFIG = { displayModeBar: false, responsive: true, showTips: false };
const MOST_MARKERS = 40;
const MOST_NAMES = 20;
const MOST_POINTS = 32;
const LONGEST_NAME = 34;
const SECOND = 1000;
const DAY = 86400 * SECOND;
// The day comes below the first tick of each day, as plotly does it, in the order of the page's other dates.
const DATES = [
  { dtickrange: [null, 1000], value: "%H:%M:%S.%L\n%-d %b %Y" }, { dtickrange: [1000, 60000], value: "%H:%M:%S\n%-d %b %Y" },
  { dtickrange: [60000, 86400000], value: "%H:%M\n%-d %b %Y" }, { dtickrange: [86400000, "M1"], value: "%-d %b\n%Y" },
  { dtickrange: ["M1", "M12"], value: "%b\n%Y" }, { dtickrange: ["M12", null], value: "%Y" },
];
const coarse = window.matchMedia("(pointer: coarse)");
const drawn = new Map();

// The colours are those of the style sheet, so that there is one place for them.
function palette() {
  const probe = document.body.appendChild(document.createElement("span"));
  const found = Object.fromEntries(ROLES.map((role) => {
    probe.style.color = `var(--${role})`;
    return [role, getComputedStyle(probe).color];
  }));
  probe.remove();
  return found;
}

export function draw(id, make) {
  drawn.set(id, make);
  paint(id, make, palette());
}

export function redraw() {
  const colours = palette();
  for (const [id, make] of drawn) paint(id, make, colours);
}

function paint(id, make, colours) {
  const place = byId(id);
  if (!place.clientWidth) return; // its section is hidden
  const narrow = place.clientWidth < 480;
  const { traces, layout, label } = make(colours, narrow);
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.style.height = `${layout.height}px`;
  Plotly.react(place, traces, layout, CONFIG);
}

// Shows the last `seconds` of the charts over time; all of it without a number.
export function showLast(seconds, series) {
  const range = seconds && series.length ? [local(Date.parse(series.at(-1).to) - 1000 * seconds), local(Date.parse(series.at(-1).to))] : null;
  for (const id of ["reward-plot", "exploration-plot"]) {
    const place = byId(id);
    if (place.data) Plotly.relayout(place, range ? { "xaxis.range": range } : { "xaxis.autorange": true });
  }
}

function layoutOf(colours, narrow, { x = {}, y = {}, legend = false, height = 340, left = 56 } = {}) {
  const axis = {
    gridcolor: colours.grid, linecolor: colours.grid, tickcolor: colours.grid, zeroline: false, automargin: true, fixedrange: true,
    tickfont: { color: colours.quiet },
  };
  const title = (text) => ({ text, font: { color: colours.quiet, size: 12 }, standoff: 12 });
  const named = (each) => (each.title ? { ...each, title: title(each.title) } : each);
  return {
    height,
    margin: { l: narrow ? 40 : left, r: narrow ? 6 : 12, t: legend ? 40 : 8, b: 40 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colours.ink, size: narrow ? 11 : 13, family: "system-ui, -apple-system, Segoe UI, sans-serif" },
    dragmode: coarse.matches || x.fixedrange !== false ? false : "zoom",
    hovermode: "closest",
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.grid, font: { color: colours.ink } },
    showlegend: legend,
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", traceorder: "reversed", itemclick: false, itemdoubleclick: false },
    uirevision: "kept", // zoom stays when new data come
    xaxis: { ...axis, showgrid: false, ...named(x) },
    yaxis: { ...axis, ...named(y) },
  };
}

// The axis of time. Around a lone point plotly shows a millisecond: here it is the time that the point stands for.
function overTime(series, kind) {
  const axis = { type: "date", fixedrange: false, tickformatstops: DATES, autotickangles: [0] };
  if (series.length !== 1) return axis;
  const at = middle(series[0], kind);
  const half = Math.max(kind === "campaign" ? 3 * DAY : 30 * SECOND, (Date.parse(series[0].to) - Date.parse(series[0].from)) / 2);
  return { ...axis, autorangeoptions: { include: [local(at - half), local(at + half)] } };
}

const middle = (each, kind) => (kind === "campaign" ? Date.parse(each.from) : (Date.parse(each.from) + Date.parse(each.to)) / 2);

const SHARES = {
  holdout: { colour: "neutral", dash: "dash", symbol: "square", width: 2 },
  explored: { colour: "warm", dash: "dot", symbol: "diamond", width: 2 },
  chosen: { colour: "accent", dash: "solid", symbol: "circle", width: 3 },
};

// Bands are closed polygons, one for each stretch without a gap.
function band(points, colour) {
  const x = [];
  const y = [];
  let stretch = [];
  const close = () => {
    if (stretch.length > 1) {
      if (x.length) { x.push(null); y.push(null); }
      for (const [at, , high] of stretch) { x.push(at); y.push(high); }
      for (const [at, low] of stretch.toReversed()) { x.push(at); y.push(low); }
    }
    stretch = [];
  };
  for (const point of points) point[1] === null || point[2] === null ? close() : stretch.push(point);
  close();
  return { type: "scatter", x, y, mode: "lines", line: { width: 0, color: colour }, fill: "toself", fillcolor: colour, hoverinfo: "skip", showlegend: false };
}

export const sharesIn = (series) => Object.keys(SHARES).filter((share) => series.some((each) => (each[share]?.mean ?? null) !== null));

// The points of the last `seconds`; all of them without a number.
const lastOf = (all, seconds) => (seconds ? all.filter((each) => Date.parse(each.to) > Date.parse(all.at(-1).to) - 1000 * seconds) : all);

export const isOpen = (each) => (each.open ?? 0) > 0;

// Points with open windows lack the rewards that are still to come, and would look like a fall. They are drawn only
// where they are most of what is to be seen, and then apart from the line.
export function showsOpen(all, seconds) {
  const some = lastOf(all, seconds);
  return 2 * some.filter(isOpen).length > some.length;
}

// Neighbouring ones of some points as one, so that at most `most` of all points are seen of the last `seconds`.
function pooled(some, all, seconds, kind, most) {
  if (kind === "campaign") return some; // a round is a round
  const size = Math.max(1, Math.ceil(lastOf(all, seconds).length / most));
  const groups = [];
  for (let i = 0; i < some.length; i += size) groups.push(some.slice(i, i + size));
  return groups.map((group) => ({
    from: group[0].from, to: group.at(-1).to, exploring: exploringOf(group), ...Object.fromEntries(Object.keys(SHARES).map((share) => [share, together(group.map((each) => each[share]))])),
  }));
}

// The share of exploration in several points; null if it is not known.
export function exploringOf(group) {
  const some = group.filter((each) => (each.exploring ?? null) !== null);
  const n = some.reduce((sum, each) => sum + each.decisions, 0);
  return n ? some.reduce((sum, each) => sum + each.decisions * each.exploring, 0) / n : null;
}

// The mean of several means, with its interval.
function together(means) {
  const some = means.filter((each) => (each?.mean ?? null) !== null && each.n > 0);
  if (!some.length) return null;
  const n = some.reduce((sum, each) => sum + each.n, 0);
  const mean = some.reduce((sum, each) => sum + each.n * each.mean, 0) / n;
  if (some.some((each) => (each.low ?? null) === null || (each.high ?? null) === null)) return { n, mean, low: null, high: null };
  if (some.every((each) => each.effective_n)) return { n, mean, ...wilson(mean, some.reduce((sum, each) => sum + each.effective_n, 0)) };
  const half = Math.sqrt(some.reduce((sum, each) => sum + (each.n * (each.high - each.low) / 2) ** 2, 0)) / n;
  return { n, mean, low: mean - half, high: mean + half };
}

// The 95 % interval of the mean of n independent rewards of 0 or 1, which has no ends below 0 or above 1.
function wilson(mean, n) {
  const z2 = 1.96 ** 2 / n;
  const middle = (mean + z2 / 2) / (1 + z2);
  const half = Math.sqrt(z2 * (mean * (1 - mean) + z2 / 4)) / (1 + z2);
  return { low: Math.max(middle - half, 0), high: Math.min(middle + half, 1) };
}

export function rewardChart({ series: all, kind, reward_name: reward }, seconds) {
  return (colours, narrow) => {
    const most = narrow ? MOST_POINTS / 2 : MOST_POINTS;
    const drawable = (some) => pooled(some, all, seconds, kind, most).filter((each) => sharesIn([each]).length);
    const series = drawable(all.filter((each) => !isOpen(each)));
    const open = showsOpen(all, seconds) ? drawable(all.filter(isOpen)) : [];
    const shares = sharesIn(series);
    const times = series.map((each) => local(middle(each, kind)));
    const value = (each, share, part) => each[share]?.[part] ?? null;
    const bands = shares.map((share) =>
      band(series.map((each, i) => [times[i], value(each, share, "low"), value(each, share, "high")]), colours[`${SHARES[share].colour}-soft`]));
    const lines = shares.map((share) => {
      const { colour, dash, symbol, width } = SHARES[share];
      return {
        type: "scatter", name: share, x: times, y: series.map((each) => value(each, share, "mean")),
        mode: series.length > MOST_MARKERS ? "lines" : "lines+markers", connectgaps: kind === "service",
        line: { color: colours[colour], width, dash }, marker: { color: colours[colour], size: narrow ? 5 : 7, symbol },
        hovertemplate: `%{x|%-d %b %H:%M}: %{y:.3~g}<extra>${share}</extra>`,
      };
    });
    const hollow = sharesIn(open).map((share) => {
      const { colour, symbol } = SHARES[share];
      return {
        type: "scatter", name: `${share}, still open`, x: open.map((each) => local(middle(each, kind))), y: open.map((each) => value(each, share, "mean")),
        mode: "lines+markers", connectgaps: true, showlegend: !shares.includes(share), line: { color: colours[colour], width: 1, dash: "dot" },
        marker: { color: colours[colour], size: narrow ? 6 : 8, symbol: `${symbol}-open`, line: { width: 1.5 } },
        hovertemplate: `%{x|%-d %b %H:%M}: %{y:.3~g} so far<extra>${share}, still open</extra>`,
      };
    });
    const y = narrow ? {} : { title: `mean ${escaped(reward ?? "reward")}` };
    const drawn = sharesIn([...series, ...open]).join(", ");
    return {
      traces: [...bands, ...hollow, ...lines],
      layout: layoutOf(colours, narrow, { x: overTime([...series, ...open], kind), y, legend: true, height: narrow ? 300 : 400 }),
      label: `Line chart: mean ${reward ?? "reward"} over time of ${drawn}. ${open.length ? "Hollow points are still open. " : ""}The table below has the numbers.`,
    };
  };
}

export function explorationChart({ series: all, kind }, seconds) {
  return (colours, narrow) => {
    const series = pooled(all, all, seconds, kind, MOST_POINTS);
    return {
      traces: [{
        type: "scatter", x: series.map((each) => local(middle(each, kind))), y: series.map((each) => each.exploring ?? null),
        mode: series.length > MOST_MARKERS ? "lines" : "lines+markers", fill: "tozeroy", fillcolor: colours["accent-soft"],
        line: { color: colours.accent, width: 2 }, marker: { color: colours.accent, size: 6 }, cliponaxis: false, hovertemplate: "%{x|%-d %b %H:%M}: %{y:.1%}<extra></extra>",
      }],
      layout: layoutOf(colours, narrow, { x: overTime(series, kind), y: { tickformat: ".1~%", rangemode: "tozero" }, height: 280, left: 44 }),
      label: "Area chart: share of exploration over time. The table below has the numbers.",
    };
  };
}

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

export function quotaChart({ quotas, what, bounded, marked }) {
  return (colours, narrow) => {
    const columns = new Set(quotas.map((each) => each.column));
    const some = quotas.slice(0, 2 * MOST_NAMES).toReversed();
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

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const cut = (name, most) => (name.length > most ? `${name.slice(0, Math.floor(most / 2) - 1)}…${name.slice(-Math.floor(most / 2))}` : name);

// A product that is too long for one line has two.
function lines(name, most) {
  const at = name.indexOf(" × ");
  return name.length > most && at > 0 ? [name.slice(0, at + 2), name.slice(at + 3)] : [name];
}

// Names for an axis: cut in the middle, without mark-up, and all different, since equal ones would be one place.
function distinct(names, narrow) {
  const most = narrow ? 20 : LONGEST_NAME;
  const seen = new Map();
  return names.map((name) => {
    const short = lines(name, most).map((line) => escaped(cut(line, most))).join("<br>");
    const n = (seen.get(short) ?? 0) + 1;
    seen.set(short, n);
    return n === 1 ? short : `${short} (${n})`;
  });
}
