// A page that is opened from disk may not start a worker, and the search of the theme is one. Run it in a hidden frame then.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.receive(data));
      const script = inside.document.createElement("script");
      script.src = address;
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.append(script);
    }
    receive(data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.dispatchEvent(message);
      this.onmessage?.(message);
    }
    async postMessage(data) {
      await this.ready;
      const inside = this.frame.contentWindow;
      inside?.dispatchEvent(new inside.MessageEvent("message", { data: inside.structuredClone(data) }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
