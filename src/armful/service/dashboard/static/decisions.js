// The last decisions: one line each, and on demand its arms with why each was chosen.
import { byId, element, fillList, fillTable, setProse, setText, show, svg } from "./dom.js";
import { exactMoment, number, plural, signed } from "./words.js";

const COLUMNS = [
  ["place", false], ["arm", false], ["score", true], ["predicted", true], ["bonus", true], ["probability", true], ["reward", true],
];

let newest = [];

// While a line is open or has the focus the list stays; newer decisions are shown when the reader asks for them.
export function showDecisions(decisions) {
  const list = byId("decisions-list");
  const isRead = list.contains(document.activeElement) || list.querySelector("details[open]") !== null;
  const shown = new Set([...list.children].map((child) => child.dataset.key));
  const isNew = ({ decision_id: id }) => !shown.has(String(id));
  newest = decisions;
  setText(byId("decisions-text"), decisions.length
    ? "The newest first. Open one to see its arms: the score is the predicted reward plus a bonus for what is not known yet, up to the cap."
    : "No decision has been asked for yet.");
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
  showDecisions(newest);
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
  const text = JSON.stringify(decision);
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
  const rows = chosen.map((each) => [String(each.position), each.id + (each.share === "explored" ? " (drawn at random)" : ""), score(each), ...numbersOf(each)]);
  if (runnerUp) rows.push(["next", runnerUp.id, score(runnerUp), ...numbersOf(runnerUp)]);
  const table = find("table");
  fillTable(table, COLUMNS, rows);
  drawBars(table, [...chosen, ...(runnerUp ? [runnerUp] : [])]);
  if (runnerUp) table.tBodies[0].rows[rows.length - 1].className = "runner-up";
}

const score = (arm) => number(arm.score) + (arm.capped ? " (cap)" : "");
const numbersOf = (arm) => [number(arm.predicted), signed(arm.bonus), number(arm.probability), number(arm.reward)];

function contextOf(decision) {
  const model = decision.model_version === null || decision.model_version === undefined ? "before the first model" : `by model version ${decision.model_version}`;
  const unit = decision.unit_present ? "for a known unit" : "without a unit";
  return `Decided ${model}, ${unit}. ${decision.runner_up ? "The last line is the best arm that was not chosen." : ""}`;
}

// Predicted reward and bonus as a bar beside the score, on one scale for the decision.
function drawBars(table, arms) {
  const width = 90;
  const largest = Math.max(...arms.map((arm) => Math.max(0, arm.predicted ?? 0) + Math.max(0, arm.bonus ?? 0)), 1e-12);
  arms.forEach((arm, i) => {
    const cell = table.tBodies[0].rows[i].cells[2];
    const predicted = (width * Math.max(0, arm.predicted ?? 0)) / largest;
    const bonus = (width * Math.max(0, arm.bonus ?? 0)) / largest;
    cell.querySelector("svg")?.remove();
    cell.prepend(svg("svg", { width, height: 10, viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", "aria-hidden": "true", class: "amount" },
      svg("rect", { class: "predicted", x: 0, y: 0, width: predicted, height: 10 }),
      svg("rect", { class: "bonus", x: predicted, y: 0, width: bonus, height: 10 })));
  });
}
