// Server-sent events read with fetch, so that a key can be sent; connects again by itself.
import { detailOf, fetchWithKey } from "./key.js";

const SILENCE = 15000; // without a sign of life for so long the connection is given up
const WAITS = [500, 1000, 2000, 5000, 10000];

// Calls handlers.event(name, data) for each event and handlers.down(why) when there is no connection.
export class Live {
  constructor(url, handlers) {
    this.url = url;
    this.handlers = handlers;
    this.failures = 0;
    this.stopped = false;
    this.wake = () => {};
    this.retry = () => { this.failures = 0; this.wake(); };
    window.addEventListener("online", this.retry);
    document.addEventListener("visibilitychange", this.retry);
    this.run();
  }

  stop() {
    this.stopped = true;
    window.removeEventListener("online", this.retry);
    document.removeEventListener("visibilitychange", this.retry);
    this.abort?.abort();
    this.wake();
  }

  async run() {
    while (!this.stopped) {
      let why = "";
      try {
        why = await this.read();
      } catch (error) {
        why = error.name === "AbortError" || error instanceof TypeError ? "" : String(error.message ?? error);
      }
      if (this.stopped) return;
      this.handlers.down(why);
      const wait = WAITS[Math.min(this.failures++, WAITS.length - 1)];
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  async read() {
    this.abort = new AbortController();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.abort.abort(), SILENCE);
    };
    const answer = await fetchWithKey(this.url, { signal: this.abort.signal });
    if (!answer.ok) return detailOf(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      alive();
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.stopped) return "";
        alive();
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) this.take(block);
        this.failures = 0;
      }
    } finally {
      clearTimeout(timer);
      this.abort.abort();
    }
  }

  take(block) {
    let name = "message";
    const data = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    }
    if (data.length) this.handlers.event(name, JSON.parse(data.join("\n")));
  }
}
