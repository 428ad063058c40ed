// What each section says and draws.
import { MOST_GROUPS, MOST_NAMES, coefficientChart, positionChart, quotaChart } from "./barcharts.js";
import { draw } from "./charts.js";
import { showDecisions } from "./decisions.js";
import { byId, element, fillList, fillTable, prose, setProse, setText, show } from "./dom.js";
import { isLate, showHero, showTiles } from "./hero.js";
import { showNext } from "./next.js";
import { drawSeries, exploringIn, showExploration, showReward } from "./overtime.js";
import { NONE, age, count, duration, number, percent, plural, signed } from "./words.js";

const MOST_SAID = 4; // bounds of quotas in a sentence
const MOST_COUNTED = 200; // groups of a quota: the store keeps no more, the smallest are left out
const LEVELS = { problem: ["✕", "problem"], warning: ["!", "look"], ok: ["✓", "fine"], open: [NONE, "not yet"] };
const ORDER = Object.keys(LEVELS);
const CONSTANT = "constant"; // the name of the feature that every arm has

const isEmpty = ({ kind, decisions }) => kind !== "campaign" && !decisions;

// Whether a section has something to show.
const SECTIONS = {
  reward: (data) => !isEmpty(data),
  exploration: (data) => exploringIn(data).length > 0,
  next: isEmpty,
  model: (data) => Boolean(data.model) && !isEmpty(data),
  coefficients: ({ coefficients, model }) => coefficients?.length > 0 && model?.n_observations > 0,
  quotas: ({ quotas }) => quotas?.length > 0,
  positions: ({ positions }) => positions?.length > 0,
  decisions: (data) => data.kind !== "campaign" && !isEmpty(data),
  audit: ({ audit }) => audit?.length > 0,
  notes: ({ notes }) => notes?.length > 0,
};

// Shows what differs from before; now: milliseconds by the server's clock. A chart is as wide as its section, which
// depends on the sections beside it: all are shown or hidden before anything is drawn.
export function showCampaign(data, before, now) {
  let isRevealed = false;
  for (const [name, has] of Object.entries(SECTIONS)) {
    const isShown = has(data);
    isRevealed ||= byId(name).hidden === isShown;
    show(byId(name), isShown);
  }
  const changed = (...names) => names.some((name) => isRevealed || data[name] !== before[name]);
  showHero(data);
  showAges(data, now);
  if (changed("decisions", "campaign")) showNext(data);
  if (changed("series", "kind", "reward_name", "explores_by", "positions")) {
    showReward(data);
    showExploration(data);
    drawSeries(data);
  }
  if (changed("coefficients", "ready_features")) showCoefficients(data);
  if (changed("quotas", "kind")) showQuotas(data);
  if (changed("positions")) showPositions(data);
  if (changed("last_decisions", "kind", "explores_by")) showDecisions(data.last_decisions ?? [], data.explores_by);
  if (changed("audit")) showAudit(data.audit ?? []);
  if (changed("notes")) showNotes(data.notes ?? []);
  showContents();
}

// Everything with an age in it, which changes by itself.
export function showAges(data, now) {
  showTiles(data, now);
  showModel(data, now);
}

function showModel(data, now) {
  const { model } = data;
  if (!model) return;
  const ago = (iso) => (iso ? `${duration(age(iso, now))} ago` : NONE);
  const service = data.kind !== "campaign";
  const text = !service
    ? "The model learns a round when its window for outcomes has closed."
    : isLate(model, now)
      ? "The updater has not looked for new rewards for a while: decisions go on with the last model. Look at the log of `armful serve`."
      : "New rewards become a new model every so often, while requests are answered.";
  setProse(byId("model-text"), text + silentText(data));
  const facts = [
    service && ["Version", count(model.version)],
    ["Outcomes learned", count(model.n_observations)],
    ["Outcomes outstanding", count(data.outstanding)],
    service && ["Made", ago(model.made_at)],
    service && ["Looked for rewards", ago(model.checked_at)],
    service && ["Updated every", duration(model.update_every_seconds)],
    service && model.suggested_seconds && ["Suggested", `every ${duration(model.suggested_seconds)}`],
  ].filter(Boolean);
  fillList(byId("model-facts"), facts, ([title]) => title,
    ([title]) => element("div", {}, element("dt", {}, title), element("dd")), (fact, [, value]) => setText(fact.lastElementChild, value));
}

// Why more outcomes are learned than rewards came.
function silentText({ model, rewards, missing = null }) {
  if (missing === null || !(model.n_observations > rewards)) return "";
  return ` What has no reward when its window closes is learned as ${number(missing)}, as \`missing\` says, so more outcomes are learned than rewards came.`;
}

function showCoefficients({ coefficients = [], ready_features: ready }) {
  if (!coefficients.length) return;
  const more = coefficients.length > MOST_NAMES ? ` The ${MOST_NAMES} largest of ${coefficients.length} are drawn.` : "";
  const isConstant = !ready && coefficients.some((each) => each.name === CONSTANT);
  const level = isConstant ? ` \`${CONSTANT}\` is not such a change but a part of every reward.` : "";
  setProse(byId("coefficients-text"),
    `How much the expected reward changes ${ready ? "as a feature rises by 1" : "between the lowest and the highest value of a feature"}, ` +
    `all others being equal, with 95 % intervals. An empty dot is an effect that may be none.${level}${more}`);
  draw("coefficients-plot", coefficientChart({ coefficients }));
  fillTable(byId("coefficients-table"), [["feature", false], ["change of the reward", true], ["from", true], ["to", true]],
    coefficients.map((each) => [each.name, signed(each.value), signed(each.low), signed(each.high)]));
}

// The bounds of a campaign are for the round that is shown, those of a service for each decision.
function showQuotas({ quotas = [], kind }) {
  if (!quotas.length) return;
  const isCampaign = kind === "campaign";
  const columns = [...new Set(quotas.map((each) => each.column))];
  const bounded = quotas.some((each) => allowed(each));
  const where = isCampaign ? "the contacts of the last round" : "all arms that were chosen";
  const bounds = !bounded ? "" : isCampaign ? " The marks are the bounds that were set." : ` ${allowedIn(quotas, columns)}`;
  setProse(byId("quotas-text"), `The share of each group of ${columns.map((column) => `\`${column}\``).join(", ")} among ${where}.${cutText(quotas, columns)}${bounds}`);
  const what = isCampaign ? "contacts" : "arms";
  draw("quotas-plot", quotaChart({ quotas, what, bounded, marked: isCampaign }));
  const limits = isCampaign ? [["at least", true], ["at most", true]] : [["in each decision", false]];
  const limitsOf = (each) => (isCampaign ? [count(each.at_least), count(each.at_most)] : [allowed(each) || NONE]);
  fillTable(byId("quotas-table"), [["group", false], ["quota", false], [what, true], ["share", true], ...(bounded ? limits : [])],
    quotas.map((each) => [each.group, each.column, count(each.n), percent(each.share), ...(bounded ? limitsOf(each) : [])]));
}

// What is not drawn, and what is not even counted.
function cutText(quotas, columns) {
  const isCut = columns.some((column) => quotas.filter((each) => each.column === column).length >= MOST_COUNTED);
  if (quotas.length <= MOST_GROUPS) return "";
  return ` The ${MOST_GROUPS} largest of ${quotas.length}${isCut ? " or more" : ""} are drawn.`;
}

// The bounds of a group, below 1 as a share; nothing if it has none.
function allowed(each) {
  const bounds = [["at least", each.at_least ?? null], ["at most", each.at_most ?? null]].filter(([, value]) => value !== null);
  return bounds.map(([word, value]) => `${word} ${value > 0 && value < 1 ? `${number(100 * value)}\u00a0%` : count(value)}`).join(" and ");
}

// The bounds in a sentence, where these are few.
function allowedIn(quotas, columns) {
  const parts = columns.flatMap((column) => {
    const groups = quotas.filter((each) => each.column === column);
    const alike = groups.every((each) => allowed(each) === allowed(groups[0]));
    const named = alike ? [[`each \`${column}\``, groups[0]]] : groups.map((each) => [`\`${each.group}\``, each]);
    return named.filter(([, each]) => allowed(each)).map(([name, each]) => `${name} ${allowed(each)}`);
  });
  if (parts.length > MOST_SAID) return "The table has what the settings allow of each group in a decision.";
  return `Of the arms of each decision, the settings give ${parts.join(", ")}.`;
}

function showPositions({ positions = [] }) {
  if (!positions.length) return;
  draw("positions-plot", positionChart({ positions }));
  fillTable(byId("positions-table"), [["position", false], ["weight", true], ["mean reward", true]],
    positions.map((each) => [String(each.position), percent(each.weight), number(each.mean)]));
}

function showAudit(findings) {
  const checked = findings.filter((each) => each.level !== "open").length;
  setText(byId("audit-text"), `What the method takes for granted, checked on the outcomes: ${checked} of ${plural(findings.length, "assumption")} could be checked.`);
  const ranked = findings.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  fillList(byId("audit-list"), ranked, (each) => JSON.stringify(each), makeFinding, () => {});
}

function makeFinding({ level, title, sentence, remedy }) {
  const [sign, word] = LEVELS[level] ?? LEVELS.open;
  return element("li", { "data-level": level },
    element("p", { class: "badge" }, element("span", { "aria-hidden": "true" }, sign), ` ${word}`),
    element("div", {}, element("h3", {}, title), element("p", {}, ...prose(sentence ?? "")),
      remedy ? element("p", {}, element("strong", {}, "What to do. "), ...prose(remedy)) : null));
}

function showNotes(notes) {
  fillList(byId("notes-list"), notes, (each) => each, (note) => element("li", {}, ...prose(note)), () => {});
}

function showContents() {
  const shown = [...document.querySelectorAll("main section")].filter((section) => !section.hidden);
  fillList(byId("contents"), shown, (section) => section.id,
    (section) => element("li", {}, element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)), () => {});
}
