// Plotly's part: drawing in the colours of the theme, and which stretch of time the charts show.
import { byId } from "./dom.js";
import { fromLocal } from "./words.js";

const ROLES = ["ink", "quiet", "card", "grid", "accent", "accent-soft", "warm", "warm-soft", "neutral", "neutral-soft"];
const CONFIG = { displayModeBar: false, responsive: true, showTips: false, doubleClick: false };
const NARROW = 480;
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

// A chart of the campaign that was shown before must not come back with the next change of the theme.
export const forget = () => drawn.clear();

function paint(id, make, colours) {
  const place = byId(id);
  if (!place.clientWidth) return; // its section is hidden
  const { traces, layout, label } = make(colours, place.clientWidth < NARROW);
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.style.height = `${layout.height}px`;
  Plotly.react(place, traces, layout, CONFIG);
  place.querySelector(".plot-container").setAttribute("aria-hidden", "true");
}

// Calls zoomed(from, to) when the reader drags across a chart over time, and unzoomed() when they click twice. What is
// shown is the page's to know: each drawing sets the range, so that new data move a chart of the last hours.
export function onZoom(id, zoomed, unzoomed) {
  const place = byId(id);
  if (place.isWatched || !place.on) return;
  place.isWatched = true;
  place.on("plotly_doubleclick", unzoomed);
  place.on("plotly_relayout", (change) => {
    const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (from && to) zoomed(fromLocal(from), fromLocal(to));
  });
}

export function layoutOf(colours, narrow, { x = {}, y = {}, legend = false, height = 340, left = 56 } = {}) {
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
    xaxis: { ...axis, showgrid: false, ...named(x) },
    yaxis: { ...axis, ...named(y) },
  };
}

export const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
