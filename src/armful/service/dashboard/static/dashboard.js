// The dashboard: reads which campaigns there are, follows one of them, and shows what comes.
import { forget, redraw } from "./charts.js";
import { clearDecisions } from "./decisions.js";
import { byId, element, setProse, setText, show } from "./dom.js";
import { detailOf, fetchWithKey } from "./key.js";
import { Live } from "./live.js";
import { drawSeries, resetView } from "./overtime.js";
import { showAges, showCampaign } from "./sections.js";
import { duration, sentence } from "./words.js";

const OLD = 8; // seconds without a sign of life from which on the page says so
const state = { data: {}, paused: false, live: null, seen: 0, ahead: 0, connected: false, waiting: null };

const now = () => Date.now() + state.ahead; // by the server's clock
const announce = (text) => setText(byId("announcement"), text);

function trouble(text) {
  setProse(byId("trouble"), sentence(text));
  show(byId("trouble"), Boolean(text));
}

function follow(campaign) {
  state.live?.stop();
  Object.assign(state, { data: {}, waiting: null, connected: false });
  clearDecisions();
  forget();
  resetView(() => drawSeries(state.data));
  show(byId("content"), false);
  show(byId("waiting"), true);
  state.live = new Live(`dashboard/events?campaign=${encodeURIComponent(campaign)}`, { event: take, down });
}

function take(name, message) {
  if (!state.connected) announce(state.seen ? "Connected again." : "Connected.");
  state.connected = true;
  state.seen = Date.now();
  state.ahead = Date.parse(message.now) - Date.now();
  trouble(name === "trouble" ? `The server cannot read the campaign: ${message.detail}` : "");
  if (name === "update") {
    state.waiting = { ...state.waiting, ...message.changed };
    if (!state.paused) apply();
  }
  showState();
}

function apply() {
  if (!state.waiting) return;
  const before = state.data;
  state.data = { ...before, ...state.waiting };
  state.waiting = null;
  show(byId("waiting"), false);
  show(byId("content"), true);
  showCampaign(state.data, before, now());
  const version = state.data.model?.version;
  if (before.model && version && version !== before.model.version) announceModel(version);
}

// At most once a minute: a reader of the screen is told of new models, not of every number.
let announcedAt = Date.now();
function announceModel(version) {
  if (Date.now() - announcedAt < 60000) return;
  announcedAt = Date.now();
  announce(`Model version ${version}.`);
}

function down(why) {
  if (state.connected) announce("The connection was lost; trying again.");
  state.connected = false;
  if (why) trouble(why);
  showState();
}

function showState() {
  const silent = (Date.now() - state.seen) / 1000;
  let [kind, text] = ["live", "Live"];
  if (!state.seen) [kind, text] = ["connecting", "Connecting"];
  else if (!state.connected || silent > OLD) [kind, text] = ["old", `Last seen ${duration(silent)} ago`];
  else if (state.paused) [kind, text] = ["paused", "Paused"];
  byId("live").dataset.state = kind;
  setText(byId("live-text"), text);
}

function pause() {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  setText(byId("pause"), state.paused ? "Resume" : "Pause");
  if (!state.paused) apply();
  showState();
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  redraw();
}

function chooseTheme(theme) {
  try {
    if (theme) localStorage.setItem("armful-theme", theme);
    else localStorage.removeItem("armful-theme");
  } catch {
    // it holds for this page only
  }
  setTheme(theme);
}

async function start() {
  const answer = await fetchWithKey("dashboard/campaigns");
  if (!answer.ok) throw new Error(await detailOf(answer));
  const { campaigns, api } = await answer.json();
  show(byId("docs-link"), api);
  if (!campaigns.length) throw new Error("The store has no campaign yet: `armful init` makes one.");
  const select = byId("campaign");
  select.replaceChildren(...campaigns.map(({ name }) => element("option", { value: name }, name)));
  show(byId("pick"), campaigns.length > 1);
  const wanted = new URLSearchParams(location.search).get("campaign");
  if (campaigns.some(({ name }) => name === wanted)) select.value = wanted;
  select.addEventListener("change", () => {
    history.replaceState(null, "", `?campaign=${encodeURIComponent(select.value)}`);
    follow(select.value);
  });
  follow(select.value);
}

async function startAgain() {
  try {
    await start();
    trouble("");
  } catch (error) {
    show(byId("waiting"), false);
    trouble(error instanceof TypeError ? "The server does not answer; trying again." : error.message);
    setTimeout(startAgain, 3000);
  }
}

byId("pause").addEventListener("click", pause);
byId("theme").value = document.documentElement.dataset.theme ?? "";
byId("theme").addEventListener("change", (event) => chooseTheme(event.target.value));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("beforeprint", () => setTheme("light"));
window.addEventListener("afterprint", () => setTheme(byId("theme").value));
setInterval(() => {
  showState();
  if (state.connected && !state.paused && state.data.campaign) showAges(state.data, now());
}, 1000);
startAgain();
