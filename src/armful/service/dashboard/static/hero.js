// The headline and the numbers at the top.
import { byId, element, fillList, setProse, setText, show } from "./dom.js";
import { exploringOf } from "./points.js";
import { NONE, age, count, date, duration, interval, percent, plural, sentence, signed, signedPercent } from "./words.js";

const LATE = 3; // a model that was not looked at for so many intervals is late
const CERTAINTY = { sure: "against the holdout", likely: "probably not chance", open: "may be chance" };
const LIFT_LEVEL = { sure: "accent", likely: "" };
// Arms by the setting `explore` are counted, and what the policy itself does is not.
const DRAWN = { bonus: "of the arms chosen last", draw: "of the arms chosen last", random: "by explore; not by epsilon" };

export function showHero(data) {
  document.title = `${data.campaign} · armful`;
  setText(byId("eyebrow"), data.kind === "campaign" ? "Campaign" : "Decision service");
  setText(byId("name"), data.campaign);
  setProse(byId("sentence"), sentence(data.sentence));
  const more = data.lift?.sentence;
  show(byId("lift-sentence"), Boolean(more) && more !== data.sentence);
  if (more) setProse(byId("lift-sentence"), sentence(more));
}

export function showTiles(data, now) {
  fillList(byId("tiles"), tilesOf(data, now), (each) => each.title, makeTile, (tile, { value, note, level }) => {
    tile.dataset.level = level ?? "";
    setText(tile.querySelector("strong"), value);
    setText(tile.querySelector("span"), note);
  });
}

const makeTile = ({ title }) => element("div", {}, element("dt", {}, title), element("dd", {}, element("strong"), element("span")));

function tilesOf(data, now) {
  const { lift, model, series } = data;
  const isCampaign = data.kind === "campaign";
  const explored = series.filter((each) => (each.exploring ?? null) !== null);
  const exploring = exploringOf(explored.slice(isCampaign ? -1 : -2)); // the last point of a service may be one decision
  const tiles = [];
  if (lift && (lift.value ?? null) !== null) tiles.push(liftTile(lift, isCampaign));
  tiles.push({ title: isCampaign ? "Rounds" : "Decisions", value: count(data.decisions), note: series.length ? `since ${date(series[0].from)}` : "none yet" });
  tiles.push({ title: "Rewards", value: count(data.rewards), note: `${count(data.outstanding)} outstanding` });
  if (exploring !== null) tiles.push({ title: "Exploration", value: percent(exploring), note: isCampaign ? "of the last round" : DRAWN[data.explores_by] ?? DRAWN.bonus });
  if (model) tiles.push(modelTile(model, now));
  tiles.push({ title: "Audit", ...verdictOf(data.audit ?? []) });
  return tiles;
}

// A lift that may be chance is not what is to be seen first.
function liftTile(lift, isCampaign) {
  const isShare = (lift.relative ?? null) !== null;
  const note = isShare ? `${signed(lift.value)} per ${isCampaign ? "contact" : "arm"}` : `95\u00a0% interval ${interval(lift.low, lift.high, signed)}`;
  return {
    title: "Lift", value: isShare ? signedPercent(lift.relative) : signed(lift.value),
    note: `${note}, ${CERTAINTY[lift.certainty] ?? CERTAINTY.open}`, level: LIFT_LEVEL[lift.certainty] ?? "open",
  };
}

// What could not be checked yet is not called fine.
function verdictOf(findings) {
  const [problems, looks, open] = ["problem", "warning", "open"].map((level) => findings.filter((each) => each.level === level).length);
  if (problems) return { value: plural(problems, "problem"), note: looks ? `and ${looks} to look at, below` : "see below", level: "problem" };
  if (looks) return { value: String(looks), note: "to look at, below", level: "warning" };
  if (open === findings.length) return { value: NONE, note: "too few outcomes yet" };
  return { value: "Fine", note: open ? `${findings.length - open} of ${findings.length} checked` : "nothing to repair" };
}

export const isLate = (model, now) => Boolean(model.update_every_seconds) && age(model.checked_at ?? model.made_at, now) > LATE * model.update_every_seconds + 5;

function modelTile(model, now) {
  const known = model.version !== null && model.version !== undefined;
  if (!known) return { title: "Model", value: count(model.n_observations), note: "outcomes learned" };
  const tile = { title: "Model version", value: count(model.version) };
  if (isLate(model, now)) return { ...tile, note: "the updater is late", level: "warning" };
  return { ...tile, note: model.made_at ? `${duration(age(model.made_at, now))} old` : "before the first update" };
}
