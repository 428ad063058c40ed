// The charts over time: rewards and exploration.
import { escaped, layoutOf } from "./charts.js";
import { isKnown, isOpen, middle, pooled, seenIn, sharesIn, showsOpen, spanOf } from "./points.js";
import { exactMoment, local, moment, number, percent } from "./words.js";

const MOST_MARKERS = 40;
const MOST_POINTS = 32;
const ROOM = 0.06; // above and below what is seen, as a share of it
const SECOND = 1000;
const DAY = 86400 * SECOND;
// The day comes below the first tick of each day, as plotly does it, in the order of the page's other dates.
const DATES = [
  { dtickrange: [null, 1000], value: "%H:%M:%S.%L\n%-d %b %Y" }, { dtickrange: [1000, 60000], value: "%H:%M:%S\n%-d %b %Y" },
  { dtickrange: [60000, 86400000], value: "%H:%M\n%-d %b %Y" }, { dtickrange: [86400000, "M1"], value: "%-d %b\n%Y" },
  { dtickrange: ["M1", "M12"], value: "%b\n%Y" }, { dtickrange: ["M12", null], value: "%Y" },
];
const LOOKS = {
  holdout: { colour: "neutral", dash: "dash", symbol: "square", width: 2 },
  explored: { colour: "warm", dash: "dot", symbol: "diamond", width: 2 },
  chosen: { colour: "accent", dash: "solid", symbol: "circle", width: 3 },
};

// Points that are less than a minute long are told apart by their seconds.
export const momentIn = (series) => (series.some(({ from, to }) => Date.parse(to) - Date.parse(from) < 60000) ? exactMoment : moment);

// The axis of time. Around a lone point plotly shows a millisecond: here it is the time that the point stands for.
function overTime(series, kind, span) {
  const axis = { type: "date", fixedrange: false, tickformatstops: DATES, autotickangles: [0] };
  if (span) return { ...axis, autorange: false, range: span.map(local) };
  if (series.length !== 1) return { ...axis, autorange: true };
  const at = middle(series[0], kind);
  const half = Math.max(kind === "campaign" ? 3 * DAY : 30 * SECOND, (Date.parse(series[0].to) - Date.parse(series[0].from)) / 2);
  return { ...axis, autorange: true, autorangeoptions: { include: [local(at - half), local(at + half)] } };
}

// An axis for the values that are seen. Plotly would fit it to all points, also to those outside of the range.
function overValues(values, span, axis) {
  const isPositive = values.every((value) => value >= 0);
  if (!span || !values.length) return { ...axis, autorange: true, rangemode: isPositive ? "nonnegative" : "normal" };
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = ROOM * (high - low) || Math.abs(high) || 1;
  return { ...axis, autorange: false, range: [isPositive ? Math.max(0, low - room) : low - room, high + room] };
}

// The entries of a line or a band with null where it is broken: before a pause. `entry` returns null for a point without.
function broken(series, entry) {
  const found = [];
  let isPaused = false;
  for (const each of series) {
    isPaused ||= each.isAfterPause;
    const one = entry(each);
    if (one === null) continue;
    if (isPaused && found.length) found.push(null);
    isPaused = false;
    found.push(one);
  }
  return found;
}

// Where there are too many markers, only points that no line leads to have one.
const markerSizes = (entries, n, size) =>
  (n <= MOST_MARKERS ? size : entries.map((each, i) => (each && !entries[i - 1] && !entries[i + 1] ? size : 0)));

// Bands are closed polygons, one for each stretch without a gap; `ends` returns the two ends of a band at a point.
function band(series, ends, kind, colour) {
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
  for (const each of series) {
    const { low = null, high = null } = ends(each) ?? {};
    if (each.isAfterPause || low === null || high === null) close();
    if (low !== null && high !== null) stretch.push([local(middle(each, kind)), low, high]);
  }
  close();
  return { type: "scatter", x, y, mode: "lines", line: { width: 0, color: colour }, fill: "toself", fillcolor: colour, hoverinfo: "skip", showlegend: false };
}

// A line of means; a round without one breaks it, and so does a pause.
function line(series, share, kind) {
  const entries = broken(series, (each) => (isKnown(each[share]) || kind === "campaign" ? [local(middle(each, kind)), each[share]?.mean ?? null] : null));
  return { entries, type: "scatter", x: entries.map((each) => each?.[0] ?? null), y: entries.map((each) => each?.[1] ?? null), mode: "lines+markers", connectgaps: false };
}

export function rewardChart({ series: all, kind, reward_name: reward }, view) {
  const span = spanOf(all, view);
  return (colours, narrow) => {
    const most = narrow ? MOST_POINTS / 2 : MOST_POINTS;
    const drawable = (some) => pooled(some, all, { span, kind, most }).filter((each) => sharesIn([each]).length);
    const series = drawable(all.filter((each) => !isOpen(each)));
    const open = showsOpen(all, span) ? drawable(all.filter(isOpen)) : [];
    const shares = sharesIn(series);
    const seen = seenIn([...series, ...open], span);
    const bands = shares.map((share) => band(series, (each) => each[share], kind, colours[`${LOOKS[share].colour}-soft`]));
    const lines = shares.map((share) => {
      const { colour, dash, symbol, width } = LOOKS[share];
      const { entries, ...found } = line(series, share, kind);
      return {
        ...found, name: share, cliponaxis: false, line: { color: colours[colour], width, dash },
        marker: { color: colours[colour], size: markerSizes(entries, seen.length, narrow ? 5 : 7), symbol },
        hovertemplate: `%{x|%-d %b %H:%M}: %{y:.3~g}<extra>${share}</extra>`,
      };
    });
    const hollow = sharesIn(open).map((share) => {
      const { colour, symbol } = LOOKS[share];
      const { entries: _, ...found } = line(open, share, kind);
      return {
        ...found, name: `${share}, still open`, showlegend: !shares.includes(share), line: { color: colours[colour], width: 1, dash: "dot" },
        marker: { color: colours[colour], size: narrow ? 6 : 8, symbol: `${symbol}-open`, line: { width: 1.5 } },
        hovertemplate: `%{x|%-d %b %H:%M}: %{y:.3~g} so far<extra>${share}, still open</extra>`,
      };
    });
    const values = seen.flatMap((each) => sharesIn([each]).flatMap((share) => [each[share].mean, each[share].low ?? each[share].mean, each[share].high ?? each[share].mean]));
    const y = overValues(values, span, narrow ? {} : { title: `mean ${escaped(reward ?? "reward")}` });
    return {
      traces: [...bands, ...hollow, ...lines],
      layout: layoutOf(colours, narrow, { x: overTime([...series, ...open], kind, span), y, legend: true, height: narrow ? 300 : 400 }),
      label: `Line chart: mean ${reward ?? "reward"} over time of ${sharesIn([...series, ...open]).join(", ")}. ${newestOf(all, open.length > 0)}` +
        `${open.length ? "Hollow points are still open. " : ""}The table below has the numbers.`,
    };
  };
}

// The newest point of those that are drawn, in words.
function newestOf(all, withOpen) {
  const point = all.findLast((each) => (withOpen || !isOpen(each)) && sharesIn([each]).length);
  if (!point) return "";
  const values = sharesIn([point]).toReversed().map((share) => `${share} ${number(point[share].mean)}`);
  return `Newest: ${values.join(", ")} at ${momentIn(all)(point.to)}. `;
}

export function explorationChart({ series: all, kind }, view) {
  const span = spanOf(all, view);
  return (colours, narrow) => {
    const series = pooled(all, all, { span, kind, most: MOST_POINTS });
    const entries = broken(series, (each) => (each.exploring === null ? null : [local(middle(each, kind)), each.exploring]));
    const seen = seenIn(series, span);
    const newest = all.findLast((each) => (each.exploring ?? null) !== null);
    const area = band(series, (each) => ({ low: each.exploring === null ? null : 0, high: each.exploring }), kind, colours["accent-soft"]);
    const markers = { color: colours.accent, size: markerSizes(entries, seen.length, 6) };
    return {
      traces: [area, {
        type: "scatter", x: entries.map((each) => each?.[0] ?? null), y: entries.map((each) => each?.[1] ?? null), mode: "lines+markers", connectgaps: false,
        showlegend: false, line: { color: colours.accent, width: 2 }, marker: markers, cliponaxis: false, hovertemplate: "%{x|%-d %b %H:%M}: %{y:.1%}<extra></extra>",
      }],
      layout: layoutOf(colours, narrow, {
        x: overTime(series, kind, span), y: { ...overValues(seen.map((each) => each.exploring ?? 0).concat(0), span, {}), tickformat: ".1~%" }, height: 280, left: 44,
      }),
      label: `Area chart: share of exploration over time. ${newest ? `Newest: ${percent(newest.exploring)} at ${momentIn(all)(newest.to)}. ` : ""}The table below has the numbers.`,
    };
  };
}
