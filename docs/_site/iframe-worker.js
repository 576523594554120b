/* Search from a folder: browsers start no worker for file: pages, so a hidden frame runs its script instead. */
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      this.listen = (event) => {
        if (event.source !== inside) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      };
      window.addEventListener("message", this.listen);
      inside.document.open();
      inside.document.write(
        "<script>" +
          "postMessage = (data) => parent.dispatchEvent(new MessageEvent('message', {data, source: window}));" +
          "importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, fail) => {" +
          "const one = document.createElement('script'); one.src = url; one.onload = done; one.onerror = fail;" +
          "document.body.appendChild(one); })), Promise.resolve());" +
          "<\/script><body><script src=\"" + encodeURI(String(url)) + "\"><\/script></body>"
      );
      this.ready = new Promise((done) => inside.addEventListener("load", done));
      inside.document.close();
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      window.removeEventListener("message", this.listen);
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
