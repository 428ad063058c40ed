// How numbers and times are written.
export const NONE = "–";

const THREE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const DAY = 86400;

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// Three digits, as the report has them; very small ones with an exponent.
export function number(value) {
  if (!isNumber(value)) return NONE;
  return value !== 0 && Math.abs(value) < 1e-5 ? value.toExponential(1) : minus(THREE.format(value));
}

export const count = (value) => (isNumber(value) ? minus(WHOLE.format(value)) : NONE);
// With two digits, and as a whole number from 100 % on.
const inPercent = (value) => (Math.abs(value) < 1 ? Number((100 * value).toPrecision(2)) : Math.round(100 * value));
export const signed = (value) => (isNumber(value) ? (value >= 0 ? "+" : "") + number(value) : NONE);
export const percent = (value) => (isNumber(value) ? `${number(inPercent(value))} %` : NONE);
export const signedPercent = (value) => (isNumber(value) ? `${signed(inPercent(value))} %` : NONE);
export const interval = (low, high, write = number) => (isNumber(low) && isNumber(high) ? `${write(low)} to ${write(high)}` : NONE);
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

const minus = (text) => text.replace("-", "−");

// How many seconds ago a moment was.
export const age = (iso, now) => (iso ? (now - Date.parse(iso)) / 1000 : null);

// "12 s", "5 min", "3 h", "2 days"
export function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 100) return `${s} s`;
  if (s < 100 * 60) return `${Math.round(s / 60)} min`;
  if (s < 2 * DAY) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / DAY)} days`;
}

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const MINUTE = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
const BOTH = new Intl.DateTimeFormat("en-GB", MINUTE);
const EXACT = new Intl.DateTimeFormat("en-GB", { ...MINUTE, second: "2-digit" });

export const date = (iso) => (iso ? DATE.format(new Date(iso)) : NONE);
export const exactMoment = (iso) => (iso ? EXACT.format(new Date(iso)) : NONE);
export const moment = (iso) => (iso ? BOTH.format(new Date(iso)) : NONE);

// The time on the clock of who looks, in the form in which plotly takes times as they are.
export function local(milliseconds) {
  const at = new Date(milliseconds);
  return new Date(milliseconds - at.getTimezoneOffset() * 60000).toISOString().slice(0, 23);
}

export const fromLocal = (text) => Date.parse(text.length > 10 ? text.replace(" ", "T") : `${text}T00:00`);

// A sentence that came without a capital.
export const sentence = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
