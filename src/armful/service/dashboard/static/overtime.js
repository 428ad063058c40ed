// The sections over time, rewards and exploration, and which stretch of time they show.
import { draw, onZoom } from "./charts.js";
import { byId, element, fillTable, setProse, show } from "./dom.js";
import { isKnown, isOpen, sharesIn, showsOpen, spanOf } from "./points.js";
import { explorationChart, momentIn, rewardChart } from "./timecharts.js";
import { count, date, interval, number, percent, plural } from "./words.js";

const ZOOMED = "zoomed"; // the value of what is shown while none of the ranges is
const RANGES = [["last 10 minutes", 600], ["last hour", 3600], ["last 6 hours", 21600], ["last day", 86400], ["last week", 604800], ["last 30 days", 2592000]];
// How the policy explores besides the arms that the setting `explore` draws at random.
const EXPLORES_TOO = {
  bonus: "The bonus in the scores explores too.",
  draw: "The policy explores too: each score is drawn at random from what the reward may be.",
  random: "The policy explores too: in some decisions, `epsilon` of all, every score is random. Those are not counted here.",
};
const EXPLORES_PEOPLE = {
  bonus: "they are tried out because too little is known of people like them. It usually falls as the model learns.",
  draw: "a random draw from what their reward may be put them first. It usually falls as the model learns.",
  random: "in a round that explores, a share `epsilon` of all rounds, every score is random.",
};

let view = {}; // what is seen: { seconds }, { from, to }, or all of it

export function showReward(data) {
  const { series } = data;
  const isCampaign = data.kind === "campaign";
  byId("reward").dataset.empty = String(!sharesIn(series).length);
  setRanges(series);
  const named = sharesIn(series).toReversed();
  const first = isCampaign ? [["round"], ["window closes"], ["contacts", true]] : [["from"], ["to", false, "wide"], ["decisions", true]];
  const predicted = data.positions?.length ? "predicted, if examined" : "predicted";
  const ofShares = named.flatMap((share) => [[`${share}, known`, true], [`${share}, mean`, true], [`${share}, 95\u00a0%`, true]]);
  const at = momentIn(series);
  const windows = (each) => (!isOpen(each) ? "closed" : isCampaign ? "still open" : `${count(each.open)} still open`);
  const mean = (each, share) => `${number(each[share]?.mean)}${isOpen(each) && isKnown(each[share]) ? " so far" : ""}`;
  const rows = series.toReversed().map((each) => [
    isCampaign ? `${each.round}, ${date(each.from)}` : at(each.from), isCampaign ? date(each.to) : at(each.to), count(each.decisions), windows(each),
    ...named.flatMap((share) => [count(each[share]?.n ?? 0), mean(each, share), interval(each[share]?.low, each[share]?.high)]),
    number(each.predicted),
  ]);
  fillTable(byId("reward-table"), [...first, ["windows"], ...ofShares, [predicted, true]], rows);
}

// What the chart shows; whether open points are among it depends on the range.
function rewardText(data) {
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
      : showsOpen(series, spanOf(series, view))
        ? " Hollow points are still open: they are what came so far, and change until the windows of their decisions have closed."
        : ` A point appears when the windows of its decisions have closed; ${plural(n, "decision")} ${n === 1 ? "is" : "are"} still open.`;
  const bands = series.some((each) => shares.some((share) => (each[share]?.low ?? null) !== null)) ? " Bands are 95 % intervals." : "";
  return `Mean \`${data.reward_name ?? "reward"}\` of each ${isCampaign ? "contact" : "arm"}: ${what}.${bands}${open}`;
}

export function showExploration(data) {
  const some = exploringIn(data);
  if (!some.length) return;
  setProse(byId("exploration-text"), data.kind === "campaign"
    ? `The share of the chosen whom the estimate alone would not have chosen: ${EXPLORES_PEOPLE[data.explores_by] ?? EXPLORES_PEOPLE.bonus}`
    : `The share of the chosen arms that were drawn at random, whatever the model says of them: \`explore\` in the settings. ${EXPLORES_TOO[data.explores_by] ?? EXPLORES_TOO.bonus}`);
  const at = momentIn(some);
  const rows = some.toReversed().map((each) => [at(each.from), percent(each.exploring), percent(each.capped), number(each.predicted)]);
  fillTable(byId("exploration-table"), [["from"], ["exploration", true], ["at the cap", true], ["predicted", true]], rows);
}

export const exploringIn = ({ series }) => series.filter((each) => (each.exploring ?? null) !== null);

export function drawSeries(data) {
  setProse(byId("reward-text"), rewardText(data));
  const charts = { "reward-plot": rewardChart(data, view), "exploration-plot": explorationChart(data, view) };
  for (const [id, make] of Object.entries(charts)) {
    draw(id, make);
    onZoom(id, (from, to) => look({ from, to }), () => look({}));
  }
  for (const button of document.querySelectorAll(".show-all")) show(button, Boolean(view.from));
}

const valueOf = ({ seconds = 0, from }) => (from ? ZOOMED : String(seconds));

let drawAgain = () => {};

// Begins with all of a campaign; `again` draws what the charts show.
export function resetView(again) {
  view = {};
  byId("range").value = "0";
  drawAgain = again;
}

function look(wanted) {
  view = wanted;
  byId("range").value = valueOf(view);
  drawAgain();
}

byId("range").addEventListener("change", (event) => look({ seconds: Number(event.target.value) }));
for (const button of document.querySelectorAll(".show-all")) {
  button.addEventListener("click", () => {
    look({});
    const next = byId("range").checkVisibility() ? byId("range") : byId("main"); // the button is gone
    next.focus({ preventScroll: true });
  });
}

function setRanges(series) {
  const select = byId("range");
  const whole = series.length ? (Date.parse(series.at(-1).to) - Date.parse(series[0].from)) / 1000 : 0;
  const some = [["everything", 0], ...RANGES.filter(([, seconds]) => seconds < whole)];
  if (select.options.length !== some.length + 1) {
    const ranges = some.map(([text, seconds]) => element("option", { value: seconds }, text));
    select.replaceChildren(...ranges, element("option", { value: ZOOMED, hidden: true }, "what was zoomed"));
    if (!some.some(([, seconds]) => seconds === (view.seconds ?? 0))) view = {};
    select.value = valueOf(view);
  }
  show(select.parentElement, some.length > 1);
}
