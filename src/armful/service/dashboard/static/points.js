// The points of a series: which are seen, which are drawn as one, and where there are pauses between them.
export const SHARES = ["holdout", "explored", "chosen"];
const PAUSE = 6; // times as long as usual from one point to the next
const FEWEST = 4; // points from which on it can be said what is usual

const start = (each) => Date.parse(each.from);
const end = (each) => Date.parse(each.to);

export const middle = (each, kind) => (kind === "campaign" ? start(each) : (start(each) + end(each)) / 2);
export const isOpen = (each) => (each.open ?? 0) > 0;
export const isKnown = (mean) => (mean?.mean ?? null) !== null;
export const sharesIn = (series) => SHARES.filter((share) => series.some((each) => isKnown(each[share])));

// The stretch of time that is seen, in milliseconds; null for all of it. A view: { seconds } or { from, to }.
export function spanOf(series, view) {
  if (view.from) return [view.from, view.to];
  if (!view.seconds || !series.length) return null;
  return [end(series.at(-1)) - 1000 * view.seconds, end(series.at(-1))];
}

export const seenIn = (series, span) => (span ? series.filter((each) => end(each) > span[0] && start(each) <= span[1]) : series);

// Points with open windows lack the rewards that are still to come, and would look like a fall. They are drawn only
// where they are most of what is to be seen, and then apart from the line.
export function showsOpen(all, span) {
  const some = seenIn(all, span);
  return 2 * some.filter(isOpen).length > some.length;
}

// The points that come after a pause. Rounds are days apart as it suits the campaign: between them there is none.
function afterPauses(series, kind) {
  if (kind === "campaign" || series.length < FEWEST) return new Set();
  const steps = series.slice(1).map((each, i) => start(each) - start(series[i])).toSorted((a, b) => a - b);
  const usual = steps[Math.floor((steps.length - 1) / 2)];
  return new Set(series.filter((each, i) => i > 0 && start(each) - end(series[i - 1]) > PAUSE * usual));
}

// Neighbouring ones of some points as one, so that about `most` of all points are seen; none reaches across a pause.
export function pooled(some, all, { span, kind, most }) {
  const after = afterPauses(all, kind);
  const size = kind === "campaign" ? 1 : Math.max(1, Math.ceil(seenIn(all, span).length / most));
  const groups = [];
  for (const each of some) {
    if (!groups.length || groups.at(-1).length === size || after.has(each)) groups.push([]);
    groups.at(-1).push(each);
  }
  return groups.map((group) => ({ ...asOne(group), isAfterPause: after.has(group[0]) }));
}

const asOne = (group) => ({
  from: group[0].from, to: group.at(-1).to, exploring: exploringOf(group),
  ...Object.fromEntries(SHARES.map((share) => [share, meanOf(group.map((each) => each[share]))])),
});

// The share of exploration in several points; null if it is not known.
export function exploringOf(group) {
  const some = group.filter((each) => (each.exploring ?? null) !== null);
  const n = some.reduce((sum, each) => sum + each.decisions, 0);
  return n ? some.reduce((sum, each) => sum + each.decisions * each.exploring, 0) / n : null;
}

// The mean of several means, with its interval.
function meanOf(means) {
  const some = means.filter((each) => isKnown(each) && each.n > 0);
  if (some.length < 2) return some[0] ?? null;
  const n = some.reduce((sum, each) => sum + each.n, 0);
  const mean = some.reduce((sum, each) => sum + each.n * each.mean, 0) / n;
  if (some.some((each) => (each.low ?? null) === null || (each.high ?? null) === null)) return { n, mean, low: null, high: null };
  if (some.every((each) => "squares" in each)) return { n, mean, ...wilson(mean, effectiveSize(some, n, mean)) };
  const half = Math.sqrt(some.reduce((sum, each) => sum + (each.n * (each.high - each.low) / 2) ** 2, 0)) / n;
  return { n, mean, low: mean - half, high: mean + half };
}

// How many independent rewards of 0 or 1 have this mean and the error that decisions with rewards that are alike give it.
// From the sums of all of some means: their own effective sizes, added up, would be dominated by those that are too
// large by chance.
function effectiveSize(some, n, mean) {
  const [squares, product, sizes] = ["squares", "product", "sizes"].map((name) => some.reduce((sum, each) => sum + each[name], 0));
  const spread = squares - 2 * mean * product + mean ** 2 * sizes;
  return spread > 1e-12 * squares ? Math.min((mean * (1 - mean) * n ** 2) / spread, n) : n ** 2 / sizes;
}

// The 95 % interval of the mean of n independent rewards of 0 or 1, which has no ends below 0 or above 1.
function wilson(mean, n) {
  const z2 = 1.96 ** 2 / n;
  const centre = (mean + z2 / 2) / (1 + z2);
  const half = Math.sqrt(z2 * (mean * (1 - mean) + z2 / 4)) / (1 + z2);
  return { low: Math.max(centre - half, 0), high: Math.min(centre + half, 1) };
}
