// The bearer key: kept for this tab only, asked for when the server wants one.
import { byId, setProse } from "./dom.js";
import { sentence } from "./words.js";

const NAME = "armful-key";

const stored = () => {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null;
  }
};
const store = (key) => {
  try {
    sessionStorage.setItem(NAME, key);
  } catch {
    memory = key;
  }
};
let memory = null;
let asking = null;

export function headers() {
  const key = memory ?? stored();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// Fetches, and asks for a key as often as the server refuses.
export async function fetchWithKey(url, options = {}) {
  for (;;) {
    const sent = headers();
    const answer = await fetch(url, { ...options, cache: "no-cache", headers: { ...sent, ...options.headers } });
    if (answer.status !== 401 && !(answer.status === 403 && sent.Authorization)) return answer;
    const detail = await detailOf(answer);
    if (sent.Authorization === headers().Authorization) await ask(sent.Authorization ? detail : "");
  }
}

export async function detailOf(answer) {
  try {
    const body = await answer.json();
    return body.detail || body.title || answer.statusText;
  } catch {
    return `The server answered ${answer.status}.`;
  }
}

function ask(why) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    const form = byId("key-form");
    const field = byId("key-field");
    setProse(byId("key-error"), sentence(why));
    field.value = "";
    dialog.onclose = () => asking && dialog.showModal(); // there is nothing to see without a key
    form.onsubmit = (event) => {
      event.preventDefault();
      const key = field.value.trim();
      if (!/^[\x21-\x7e]+$/.test(key)) {
        setProse(byId("key-error"), "A key has only letters, digits and signs, without blanks.");
        return;
      }
      store(key);
      asking = null;
      dialog.close(); // gives the focus back to who had it, if anybody had
      if (document.activeElement === document.body || dialog.contains(document.activeElement)) byId("main").focus({ preventScroll: true });
      resolve();
    };
    if (!dialog.open) dialog.showModal();
    field.focus();
  });
  return asking;
}
