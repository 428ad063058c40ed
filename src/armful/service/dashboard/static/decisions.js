// The last decisions: one line each, and on demand its arms with why each was chosen.
import { byId, element, fillList, fillTable, setProse, setText, show, svg } from "./dom.js";
import { exactMoment, number, plural, signed } from "./words.js";

// What is added to the predicted reward, by how the policy explores.
const ADDED = {
  bonus: { column: "bonus", key: "bonus for what is not known yet", text: "a bonus for what is not known yet, up to the cap" },
  draw: { column: "draw", key: "random draw, to explore", text: "a random draw from what the reward may be, which may be negative" },
  random: { column: "random part", key: "random part, to explore", text: "in the few decisions that explore, a random part" },
};

const columnsOf = (by) => [["place"], ["arm"], ["score", true], ["predicted", true], [ADDED[by].column, true], ["probability", true], ["reward", true]];

let newest = [];
let exploresBy = "bonus";

// While a line is open or has the focus the list stays; newer decisions are shown when the reader asks for them.
export function showDecisions(decisions, by) {
  exploresBy = by in ADDED ? by : "bonus";
  const list = byId("decisions-list");
  const isRead = list.contains(document.activeElement) || list.querySelector("details[open]") !== null;
  const shown = new Set([...list.children].map((child) => child.dataset.key));
  const isNew = ({ decision_id: id }) => !shown.has(String(id));
  newest = decisions;
  setText(byId("decisions-text"), decisions.length
    ? `The newest first. Open one to see its arms: the score is the predicted reward plus ${ADDED[exploresBy].text}.`
    : "No decision has been asked for yet.");
  setText(byId("decisions-added"), ADDED[exploresBy].key);
  show(byId("decisions-key"), decisions.length > 0);
  const held = isRead ? decisions.filter(isNew).length : 0;
  setText(byId("decisions-newer"), held === decisions.length ? "Show newer decisions" : `Show ${plural(held, "newer decision")}`);
  show(byId("decisions-newer"), held > 0);
  if (!isRead) return fillList(list, decisions, (each) => each.decision_id, make, update);
  const known = new Map(decisions.map((each) => [String(each.decision_id), each]));
  for (const child of list.children) if (known.has(child.dataset.key)) update(child, known.get(child.dataset.key));
}

// A campaign that is shown for the first time begins with an empty list.
export function clearDecisions() {
  byId("decisions-list").replaceChildren();
}

byId("decisions-newer").addEventListener("click", () => {
  clearDecisions();
  showDecisions(newest, exploresBy);
  byId("decisions-list").querySelector("summary")?.focus();
});

function make() {
  const summary = element("summary", {},
    element("span", { class: "id" }), element("span", { class: "when" }), element("span", { class: "share" }), element("span", { class: "arms" }),
    element("span", { class: "why" }));
  const table = element("table", { class: "arms-table" });
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region" }, table);
  return element("li", {}, element("details", {}, summary, element("p", { class: "context" }), scroll));
}

function update(item, decision) {
  const text = exploresBy + JSON.stringify(decision);
  if (item.shown === text) return;
  item.shown = text;
  const find = (selector) => item.querySelector(selector);
  const { chosen, runner_up: runnerUp } = decision;
  setText(find(".id"), `#${decision.decision_id}`);
  setText(find(".when"), exactMoment(decision.decided_at));
  setText(find(".share"), decision.share);
  find(".share").dataset.share = decision.share;
  setText(find(".arms"), `${plural(chosen.length, "arm")} of ${number(decision.n_candidates)}`);
  setProse(find(".why"), decision.why ?? "");
  setText(find(".context"), contextOf(decision));
  find(".scroll").setAttribute("aria-label", `Arms of decision ${decision.decision_id}`);
  const arms = [...chosen, ...(runnerUp ? [runnerUp] : [])];
  const table = find("table");
  fillTable(table, columnsOf(exploresBy), arms.map((each) => [each === runnerUp ? "next" : String(each.position), each.id, score(each), ...numbersOf(each)]));
  arms.forEach((each, i) => {
    const row = table.tBodies[0].rows[i];
    row.className = each === runnerUp ? "runner-up" : "";
    row.cells[1].append(" ", element("small", {}, reasonOf(each, decision)));
  });
  drawBars(table, arms);
}

// Why an arm is in, or out.
function reasonOf(arm, { share, runner_up: runnerUp }) {
  if (arm === runnerUp) return "left out";
  if (share === "holdout" || arm.share === "explored") return "drawn at random";
  if (arm.score === null || !runnerUp || runnerUp.score === null) return "by its score";
  if (arm.score < runnerUp.score) return "by the constraint: the best left out scores more";
  return arm.score === runnerUp.score ? "by its score, as high as that of the best left out" : "by its score, above the best left out";
}

const score = (arm) => number(arm.score) + (arm.capped ? " (cap)" : "");
const numbersOf = (arm) => [number(arm.predicted), signed(arm.bonus), number(arm.probability), number(arm.reward)];

function contextOf(decision) {
  const model = decision.model_version === null || decision.model_version === undefined ? "before the first model" : `by model version ${decision.model_version}`;
  const unit = decision.unit_present ? "for a known unit" : "without a unit";
  return `Decided ${model}, ${unit}. ${decision.runner_up ? "The last line is the best arm that was not chosen." : ""}`;
}

// The score as a bar, on one scale for the decision: the predicted reward, and beside it what is added. What is taken
// away is an outline over the end of the predicted reward. Bars begin at 0, or at the lowest part if that is negative.
function drawBars(table, arms) {
  const width = 90;
  const ends = arms.map((arm) => [arm.predicted ?? 0, (arm.predicted ?? 0) + (arm.bonus ?? 0)]);
  const [low, high] = [Math.min(0, ...ends.flat()), Math.max(0, ...ends.flat())];
  const at = (value) => (width * (value - low)) / Math.max(high - low, 1e-12);
  const rect = (name, from, to) => svg("rect", { class: name, x: Math.min(at(from), at(to)), y: 0, width: Math.abs(at(to) - at(from)), height: 10 });
  arms.forEach((arm, i) => {
    const cell = table.tBodies[0].rows[i].cells[2];
    const [predicted, total] = ends[i];
    cell.querySelector("svg")?.remove();
    cell.prepend(svg("svg", { width, height: 10, viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", "aria-hidden": "true", class: "amount" },
      rect("predicted", 0, predicted), rect(Math.abs(total) < Math.abs(predicted) ? "taken" : "bonus", predicted, total)));
  });
}
