// What each section says and draws.
import { coefficientChart, draw, explorationChart, exploringOf, isOpen, positionChart, quotaChart, rewardChart, sharesIn, showsOpen } from "./charts.js";
import { showDecisions } from "./decisions.js";
import { byId, element, fillList, fillTable, prose, setProse, setText, show } from "./dom.js";
import { NONE, count, date, duration, exactMoment, interval, moment, number, percent, plural, signed, signedPercent } from "./words.js";

const LATE = 3; // a model that was not looked at for so many intervals is late
const MOST_SAID = 4; // bounds of quotas in a sentence
const RANGES = [["last hour", 3600], ["last 6 hours", 21600], ["last day", 86400], ["last week", 604800], ["last 30 days", 2592000]];
const LEVELS = { problem: ["✕", "problem"], warning: ["!", "look"], ok: ["✓", "fine"], open: [NONE, "not yet"] };
const CERTAINTY = { sure: "against the holdout", likely: "probably not chance", open: "may be chance" };
const ORDER = Object.keys(LEVELS);

// Shows what differs from before; now: milliseconds by the server's clock.
export function showCampaign(data, before, now) {
  const changed = (...names) => names.some((name) => data[name] !== before[name]);
  showHero(data);
  showAges(data, now);
  if (changed("series", "kind", "reward_name")) {
    showReward(data);
    showExploration(data);
    drawSeries(data);
  }
  if (changed("coefficients")) showCoefficients(data);
  if (changed("quotas", "kind")) showQuotas(data);
  if (changed("positions")) showPositions(data);
  if (changed("last_decisions", "kind")) {
    show(byId("decisions"), data.kind !== "campaign");
    showDecisions(data.last_decisions ?? []);
  }
  if (changed("audit")) showAudit(data.audit ?? []);
  if (changed("notes")) showNotes(data.notes ?? []);
  showContents();
}

function showHero(data) {
  document.title = `${data.campaign} · armful`;
  setText(byId("eyebrow"), data.kind === "campaign" ? "Campaign" : "Decision service");
  setText(byId("name"), data.campaign);
  setProse(byId("sentence"), `${data.sentence.slice(0, 1).toUpperCase()}${data.sentence.slice(1)}`);
  const more = data.lift?.sentence;
  show(byId("lift-sentence"), Boolean(more) && more !== data.sentence);
  if (more) setProse(byId("lift-sentence"), more);
}

// Everything with an age in it, which changes by itself.
export function showAges(data, now) {
  const tiles = tilesOf(data, now);
  fillList(byId("tiles"), tiles, (each) => each.title, makeTile, (tile, { value, note, level }) => {
    tile.dataset.level = level ?? "";
    setText(tile.querySelector("strong"), value);
    setText(tile.querySelector("span"), note);
  });
  showModel(data, now);
}

const makeTile = ({ title }) => element("div", {}, element("dt", {}, title), element("dd", {}, element("strong"), element("span")));

function tilesOf(data, now) {
  const { lift, model, series } = data;
  const explored = series.filter((each) => (each.exploring ?? null) !== null);
  const exploring = exploringOf(explored.slice(data.kind === "campaign" ? -1 : -2)); // the last point of a service may be one decision
  const share = lift && (lift.relative ?? null) !== null;
  const tiles = [];
  if (lift && (lift.value ?? null) !== null) {
    const note = share ? `${signed(lift.value)} per ${data.kind === "campaign" ? "contact" : "arm"}` : interval(lift.low, lift.high, signed);
    const value = share ? signedPercent(lift.relative) : signed(lift.value);
    tiles.push({ title: "Lift", value, note: `${note}, ${CERTAINTY[lift.certainty] ?? CERTAINTY.open}`, level: lift.certainty === "sure" ? "accent" : "" });
  }
  tiles.push({ title: data.kind === "campaign" ? "Rounds" : "Decisions", value: count(data.decisions), note: series.length ? `since ${date(series[0].from)}` : "none yet" });
  tiles.push({ title: "Rewards", value: count(data.rewards), note: `${count(data.outstanding)} outstanding` });
  if (exploring !== null) tiles.push({ title: "Exploration", value: percent(exploring), note: data.kind === "campaign" ? "of the last round" : "of the arms chosen last" });
  if (model) tiles.push(modelTile(model, now));
  tiles.push({ title: "Audit", ...verdictOf(data.audit ?? []) });
  return tiles;
}

// What could not be checked yet is not called fine.
function verdictOf(findings) {
  const bad = findings.filter((each) => each.level === "warning" || each.level === "problem").length;
  const checked = findings.filter((each) => each.level !== "open").length;
  if (bad) return { value: String(bad), note: "to look at, below", level: "warning" };
  if (!checked) return { value: NONE, note: "too few outcomes yet" };
  return { value: "Fine", note: checked < findings.length ? `${checked} of ${findings.length} checked` : "nothing to repair" };
}

const age = (iso, now) => (iso ? (now - Date.parse(iso)) / 1000 : null);
const isLate = (model, now) => Boolean(model.update_every_seconds) && age(model.checked_at ?? model.made_at, now) > LATE * model.update_every_seconds + 5;

function modelTile(model, now) {
  const made = `${duration(age(model.made_at, now))} old`;
  const known = model.version !== null && model.version !== undefined;
  if (!known) return { title: "Model", value: count(model.n_observations), note: "outcomes learned" };
  const tile = { title: "Model version", value: count(model.version) };
  return isLate(model, now) ? { ...tile, note: "the updater is late", level: "warning" } : { ...tile, note: made };
}

function showModel(data, now) {
  const { model } = data;
  show(byId("model"), Boolean(model));
  if (!model) return;
  const ago = (iso) => (iso ? `${duration(age(iso, now))} ago` : NONE);
  const service = data.kind !== "campaign";
  const text = !service
    ? "The model learns a round when its window for outcomes has closed."
    : isLate(model, now)
      ? "The updater has not looked for new rewards for a while: decisions go on with the last model. Look at the log of `armful serve`."
      : "New rewards become a new model every so often, while requests are answered.";
  setProse(byId("model-text"), text);
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

// Points that are less than a minute long are told apart by their seconds.
const momentIn = (series) => (series.some(({ from, to }) => Date.parse(to) - Date.parse(from) < 60000) ? exactMoment : moment);

function showReward(data) {
  const { series } = data;
  const isCampaign = data.kind === "campaign";
  byId("reward").dataset.empty = String(!sharesIn(series).length);
  setRanges(series);
  const named = sharesIn(series).toReversed();
  const first = isCampaign ? [["round", false], ["window closes", false], ["contacts", true]] : [["from", false], ["to", false], ["decisions", true]];
  const predicted = data.positions?.length ? "predicted, if examined" : "predicted";
  const columns = [...first, ["windows", false], ...named.flatMap((share) => [[`${share}, known`, true], ["mean", true], ["95 %", true]]), [predicted, true]];
  const at = momentIn(series);
  const windows = (each) => (!isOpen(each) ? "closed" : isCampaign ? "still open" : `${count(each.open)} still open`);
  const mean = (each, share) => `${number(each[share]?.mean)}${isOpen(each) && (each[share]?.mean ?? null) !== null ? " so far" : ""}`;
  const rows = series.toReversed().map((each) => [
    isCampaign ? `${each.round}, ${date(each.from)}` : at(each.from), isCampaign ? date(each.to) : at(each.to), count(each.decisions), windows(each),
    ...named.flatMap((share) => [count(each[share]?.n ?? 0), mean(each, share), interval(each[share]?.low, each[share]?.high)]),
    number(each.predicted),
  ]);
  fillTable(byId("reward-table"), columns, rows);
}

// What the chart shows; whether open points are among it depends on the range.
function rewardText(data, seconds) {
  const { series } = data;
  const isCampaign = data.kind === "campaign";
  const shares = sharesIn(series);
  if (!shares.length) return data.rewards > 0 ? "No window for rewards has closed yet." : "No reward has come yet.";
  const words = isCampaign
    ? { holdout: "the holdout, whom the house rule chose", chosen: "people whom the policy chose" }
    : { holdout: "the holdout, chosen without the model", explored: "arms that were drawn at random to explore", chosen: "arms that the policy chose" };
  const what = shares.toReversed().map((share) => words[share]).join("; ");
  const n = series.reduce((sum, each) => sum + (each.open ?? 0), 0);
  const open = !n
    ? ""
    : isCampaign
      ? " A round appears when its window has closed."
      : showsOpen(series, seconds)
        ? " Hollow points are still open: they are what came so far, and change until the windows of their decisions have closed."
        : ` A point appears when the windows of its decisions have closed; ${plural(n, "decision")} ${n === 1 ? "is" : "are"} still open.`;
  const bands = series.some((each) => shares.some((share) => (each[share]?.low ?? null) !== null)) ? " Bands are 95 % intervals." : "";
  return `Mean \`${data.reward_name ?? "reward"}\` of each ${isCampaign ? "contact" : "arm"}: ${what}.${bands}${open}`;
}

export function drawSeries(data) {
  const seconds = Number(byId("range").value);
  setProse(byId("reward-text"), rewardText(data, seconds));
  if (sharesIn(data.series).length) draw("reward-plot", rewardChart(data, seconds));
  if (!byId("exploration").hidden) draw("exploration-plot", explorationChart(data, seconds));
}

function setRanges(series) {
  const select = byId("range");
  const whole = series.length ? (Date.parse(series.at(-1).to) - Date.parse(series[0].from)) / 1000 : 0;
  const some = [["everything", 0], ...RANGES.filter(([, seconds]) => seconds < whole)];
  if (select.options.length !== some.length) {
    const before = select.value;
    select.replaceChildren(...some.map(([text, seconds]) => element("option", { value: seconds }, text)));
    if (before && some.some(([, seconds]) => String(seconds) === before)) select.value = before;
  }
  show(select.parentElement, some.length > 1);
}

function showExploration(data) {
  const some = data.series.filter((each) => (each.exploring ?? null) !== null);
  show(byId("exploration"), some.length > 0);
  if (!some.length) return;
  setProse(byId("exploration-text"), data.kind === "campaign"
    ? "The share of the chosen whom the estimate alone would not have chosen: they are tried out because too little is known of people like them. It falls as the model learns."
    : "The share of the chosen arms that were drawn at random, whatever the model says of them: `explore` in the settings. The bonus in the scores explores besides.");
  const at = momentIn(some);
  const rows = some.toReversed().map((each) => [at(each.from), percent(each.exploring), percent(each.capped), number(each.predicted)]);
  fillTable(byId("exploration-table"), [["from", false], ["exploration", true], ["at the cap", true], ["predicted", true]], rows);
}

function showCoefficients({ coefficients = [], ready_features: ready }) {
  show(byId("coefficients"), coefficients.length > 0);
  if (!coefficients.length) return;
  const more = coefficients.length > 20 ? ` The 20 largest of ${coefficients.length} are drawn.` : "";
  setProse(byId("coefficients-text"),
    `How much the expected reward changes ${ready ? "as a feature rises by 1" : "between the lowest and the highest value of a feature"}, ` +
    `all others being equal, with 95 % intervals. An empty dot is an effect that may be none.${more}`);
  draw("coefficients-plot", coefficientChart({ coefficients }));
  fillTable(byId("coefficients-table"), [["feature", false], ["change of the reward", true], ["from", true], ["to", true]],
    coefficients.map((each) => [each.name, signed(each.value), signed(each.low), signed(each.high)]));
}

// The bounds of a campaign are for the round that is shown, those of a service for each decision.
function showQuotas({ quotas = [], kind }) {
  show(byId("quotas"), quotas.length > 0);
  if (!quotas.length) return;
  const isCampaign = kind === "campaign";
  const columns = [...new Set(quotas.map((each) => each.column))];
  const bounded = quotas.some((each) => allowed(each));
  const where = isCampaign ? "the contacts of the last round" : "all arms that were chosen";
  const bounds = !bounded ? "" : isCampaign ? " The marks are the bounds that were set." : ` ${allowedIn(quotas, columns)}`;
  setProse(byId("quotas-text"), `The share of each group of ${columns.map((column) => `\`${column}\``).join(", ")} among ${where}.${bounds}`);
  const what = isCampaign ? "contacts" : "arms";
  draw("quotas-plot", quotaChart({ quotas, what, bounded, marked: isCampaign }));
  const limits = isCampaign ? [["at least", true], ["at most", true]] : [["in each decision", false]];
  const limitsOf = (each) => (isCampaign ? [count(each.at_least), count(each.at_most)] : [allowed(each) || NONE]);
  fillTable(byId("quotas-table"), [["group", false], ["quota", false], [what, true], ["share", true], ...(bounded ? limits : [])],
    quotas.map((each) => [each.group, each.column, count(each.n), percent(each.share), ...(bounded ? limitsOf(each) : [])]));
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
  show(byId("positions"), positions.length > 0);
  if (!positions.length) return;
  draw("positions-plot", positionChart({ positions }));
  fillTable(byId("positions-table"), [["position", false], ["weight", true], ["mean reward", true]],
    positions.map((each) => [String(each.position), percent(each.weight), number(each.mean)]));
}

function showAudit(findings) {
  const checked = findings.filter((each) => each.level !== "open").length;
  show(byId("audit"), findings.length > 0);
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
  show(byId("notes"), notes.length > 0);
  fillList(byId("notes-list"), notes, (each) => each, (note) => element("li", {}, ...prose(note)), () => {});
}

function showContents() {
  const shown = [...document.querySelectorAll("main section")].filter((section) => !section.hidden);
  fillList(byId("contents"), shown, (section) => section.id,
    (section) => element("li", {}, element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)), () => {});
}
