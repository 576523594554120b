"use strict";
// What the page can do beyond being read: tabs, light and dark, and charts that answer, drawn from the numbers beside
// each for the width, scale, range and choice of lines at hand. No library and no request.
(() => {
  const SPACE = { left: 60, right: 16, top: 12, bottom: 44, height: 320 };
  const root = document.documentElement;
  root.classList.add("js");

  function make(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function shown(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    const short = Number(value.toPrecision(digits)), size = Math.abs(short);
    if (short !== 0 && (size < 1e-3 || size >= 10 ** digits)) {
      const [mantissa, power] = short.toExponential().split("e");
      return `${mantissa}e${Number(power)}`;
    }
    return String(short);
  }

  function niceTicks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k += 1) out.push(k * step);
    return out;
  }

  function logTicks(low, high) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const factors = last - first <= 3 ? [1, 2, 5] : [1], stride = Math.max(1, Math.floor((last - first) / 6));
    const out = [];
    for (let p = first; p <= last; p += stride) {
      for (const m of factors) if (m * 10 ** p >= low && m * 10 ** p <= high) out.push(m * 10 ** p);
    }
    return out;
  }

  function tip(box, text, x, y) {
    box.textContent = text;
    box.classList.toggle("on", Boolean(text));
    if (!text) return;
    const room = box.parentElement.clientWidth, wide = box.offsetWidth, high = box.offsetHeight;
    const left = x + 14 + wide > room ? Math.max(0, x - wide - 14) : x + 14;
    box.style.transform = `translate(${left}px, ${Math.max(0, y - high - 6)}px)`;
  }

  class Chart {
    constructor(figure) {
      this.figure = figure;
      figure.querySelector("details.numbers").open = false; // the picture tells it
      this.svg = figure.querySelector(".plot > svg");
      this.box = figure.querySelector(".tip");
      this.data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
      this.log = this.data.log;
      this.view = null; // the part of the horizontal axis that is looked at
      this.hidden = new Set();
      this.at = null;
      this.width = 0;
      this.reset = figure.querySelector(".reset");
      this.reset.addEventListener("click", () => this.look(null));
      const scale = figure.querySelector(".log");
      if (scale) scale.addEventListener("click", () => {
        this.log = !this.log;
        scale.setAttribute("aria-pressed", String(this.log));
        this.draw();
      });
      for (const key of figure.querySelectorAll(".key")) {
        key.addEventListener("click", () => {
          const k = Number(key.dataset.series), show = this.hidden.has(k);
          if (show) this.hidden.delete(k); else this.hidden.add(k);
          key.setAttribute("aria-pressed", String(show));
          this.draw();
        });
      }
      this.svg.addEventListener("pointermove", (event) => this.move(event));
      this.svg.addEventListener("pointerleave", () => { if (this.from === undefined) this.clear(); });
      this.svg.addEventListener("pointerdown", (event) => {
        this.from = this.place(event);
        this.svg.setPointerCapture(event.pointerId);
      });
      this.svg.addEventListener("pointerup", (event) => this.release(event));
      this.svg.addEventListener("pointercancel", () => { this.from = undefined; this.draw(); });
      this.svg.addEventListener("dblclick", () => this.look(null));
      this.svg.addEventListener("keydown", (event) => this.key(event));
      this.svg.addEventListener("blur", () => this.clear());
    }

    // --- what is looked at ---------------------------------------------------------------------------------------------

    lines() { return this.data.series.map((s, k) => ({ ...s, k })).filter((s) => !this.hidden.has(s.k)); }

    ranges() {
      const d = this.data, all = d.series.flatMap((s) => s.x).filter((v) => v !== null);
      let [x0, x1] = this.view || d.xRange || (d.ticks ? [-0.5, d.ticks.length - 0.5] : [Math.min(...all), Math.max(...all)]);
      if (!all.length && !d.xRange) [x0, x1] = [0, 1];
      if (x0 === x1) [x0, x1] = [x0 - 0.5, x1 + 0.5];
      let ys = this.lines().flatMap((s) => s.x.flatMap((x, i) => x < x0 || x > x1 ? []
        : [s.y[i], s.low && s.low[i], s.high && s.high[i]])).filter((v) => v !== null && v !== undefined);
      if (this.log) ys = ys.filter((v) => v > 0);
      if (d.yRange && !this.view && !this.log) return [x0, x1, ...d.yRange];
      let [y0, y1] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [this.log ? 0.1 : 0, 1];
      if (this.log) return [x0, x1, y0 / 1.15, y1 * 1.15];
      if (d.zero && !this.view) y0 = Math.min(0, y0);
      const room = 0.05 * (y1 - y0) || 0.05 * Math.abs(y1) || 1;
      return [x0, x1, d.zero && y0 === 0 ? 0 : y0 - room, y1 + room];
    }

    look(view) {
      this.view = view;
      this.reset.disabled = view === null;
      this.clear();
      this.draw();
    }

    // --- drawing -------------------------------------------------------------------------------------------------------

    draw(width = this.svg.parentElement.clientWidth) {
      if (!width) return;
      this.width = width;
      const { left, right, top, bottom, height } = SPACE, d = this.data;
      const [x0, x1, y0, y1] = this.ranges();
      this.px = (v) => left + (width - left - right) * (v - x0) / (x1 - x0);
      this.back = (p) => x0 + (x1 - x0) * (p - left) / (width - left - right);
      const share = this.log ? (v) => Math.log(v / y0) / Math.log(y1 / y0) : (v) => (v - y0) / (y1 - y0);
      this.py = (v) => height - bottom - (height - top - bottom) * share(v);
      const parts = [];
      for (const v of this.log ? logTicks(y0, y1) : niceTicks(y0, y1, 8)) {
        const y = this.py(v);
        parts.push(make("line", { x1: left, x2: width - right, y1: y, y2: y, class: "grid" }));
        parts.push(make("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, shown(v)));
      }
      const fit = Math.max(2, Math.floor((width - left - right) / (d.ticks ? 62 : 66)));
      let steps = d.ticks ? d.ticks.map((name, k) => [k, name.slice(0, 9)]).filter(([k]) => k >= x0 && k <= x1)
        : niceTicks(x0, x1, Math.min(8, fit)).map((v) => [v, shown(v)]);
      const stride = Math.max(1, Math.ceil(steps.length / fit));
      steps.forEach(([v, text], k) => {
        if (k % stride === 0) parts.push(make("text", { x: this.px(v), y: height - bottom + 18, "text-anchor": "middle" }, text));
      });
      const middle = (top + height - bottom) / 2;
      parts.push(make("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }));
      parts.push(make("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", class: "label" }, d.x));
      parts.push(make("text", { x: 14, y: middle, transform: `rotate(-90 14 ${middle})`, "text-anchor": "middle", class: "label" }, d.y));
      const name = `${this.figure.id}-clip`, clip = make("clipPath", { id: name });
      clip.append(make("rect", { x: left - 5, y: top - 6, width: width - left - right + 10, height: height - top - bottom + 12 }));
      const inside = make("g", { "clip-path": `url(#${name})` });
      for (const line of this.lines()) inside.append(this.line(line));
      this.over = make("g", {});
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.replaceChildren(...parts, clip, inside, this.over);
    }

    line(s) {
      const at = (x, v) => v === null || v === undefined || (this.log && v <= 0) ? null : [this.px(x), this.py(v)];
      const path = (points) => {
        let pen = "M";
        return points.map((p) => { const step = p ? `${pen}${p[0].toFixed(2)} ${p[1].toFixed(2)}` : ""; pen = p ? "L" : "M"; return step; }).join("");
      };
      const group = make("g", { "data-series": s.k }), shape = `s${s.k % 8}`;
      if (s.low) {
        const pairs = s.x.map((x, i) => [at(x, s.low[i]), at(x, s.high[i])]).filter(([a, b]) => a && b);
        if (s.points) group.append(make("path", { d: pairs.map(path).join(""), class: `whisker ${shape}` }));
        else if (pairs.length) {
          const around = [...pairs.map((p) => p[1]), ...pairs.map((p) => p[0]).reverse()];
          group.append(make("path", { d: `${path(around)}Z`, class: `band ${shape}` }));
        }
      }
      const points = s.x.map((x, i) => at(x, s.y[i]));
      if (s.points) for (const p of points) { if (p) group.append(make("circle", { cx: p[0], cy: p[1], r: 4, class: `dot ${shape}` })); }
      else group.append(make("path", { d: path(points), class: `curve ${shape}${s.dash ? " dash" : ""}` }));
      return group;
    }

    // --- answers -------------------------------------------------------------------------------------------------------

    place(event) {
      const box = this.svg.getBoundingClientRect();
      return (event.clientX - box.left) * this.width / box.width;
    }

    xs() {
      const [x0, x1] = this.ranges(), lines = this.lines();
      const main = lines.reduce((a, b) => b.x.length > a.x.length ? b : a, { x: [] });
      return main.x.filter((v) => v >= x0 && v <= x1);
    }

    move(event) {
      const p = this.place(event);
      if (this.from !== undefined) return this.choose(p);
      const xs = this.xs();
      if (xs.length) this.show(xs.reduce((a, b) => Math.abs(this.px(b) - p) < Math.abs(this.px(a) - p) ? b : a));
    }

    show(x) {
      this.at = x;
      const { top, bottom, height } = SPACE, d = this.data, column = this.px(x), parts = [];
      const rows = [`${d.x ? `${d.x} ` : ""}${d.ticks ? d.ticks[x] : shown(x)}`];
      let highest = height;
      parts.push(make("line", { x1: column, x2: column, y1: top, y2: height - bottom, class: "cross" }));
      for (const s of this.lines()) {
        const reach = s.x.length > 1 ? Math.abs(s.x[s.x.length - 1] - s.x[0]) / (s.x.length - 1) : 0;
        const value = s.points || s.x.includes(x) ? s.y[s.x.indexOf(x)] : this.between(s, x, reach);
        if (value === null || value === undefined) continue;
        const i = s.x.indexOf(x), spread = s.low && i >= 0 ? ` (${shown(s.low[i])} to ${shown(s.high[i])})` : "";
        rows.push(`${s.name}: ${shown(value)}${spread}`);
        if (this.log && value <= 0) continue;
        highest = Math.min(highest, this.py(value));
        parts.push(make("circle", { cx: column, cy: this.py(value), r: 5, class: `here s${s.k % 8}` }));
      }
      this.over.replaceChildren(...parts);
      const zoom = this.svg.getBoundingClientRect().width / this.width;
      tip(this.box, rows.join("\n"), column * zoom, Math.max(highest, 60) * zoom);
    }

    between(s, x, reach) { // a line with points elsewhere: read off between its two nearest
      for (let i = 1; i < s.x.length; i += 1) {
        if (s.x[i - 1] <= x && x <= s.x[i] && s.y[i - 1] !== null && s.y[i] !== null) {
          return s.y[i - 1] + (s.y[i] - s.y[i - 1]) * (x - s.x[i - 1]) / (s.x[i] - s.x[i - 1] || reach || 1);
        }
      }
      return null;
    }

    clear() {
      this.at = null;
      if (this.over) this.over.replaceChildren();
      tip(this.box, "");
    }

    choose(p) {
      const { top, bottom, height } = SPACE, a = Math.min(p, this.from), b = Math.max(p, this.from);
      this.over.replaceChildren(make("rect", { x: a, y: top, width: b - a, height: height - top - bottom, class: "chosen" }));
      tip(this.box, "");
    }

    release(event) {
      const from = this.from, to = this.place(event);
      this.from = undefined;
      if (from === undefined) return;
      if (Math.abs(to - from) < 8) return this.move(event);
      const [x0, x1] = this.ranges();
      const ends = [this.back(Math.min(from, to)), this.back(Math.max(from, to))];
      this.look([Math.max(x0, ends[0]), Math.min(x1, ends[1])]);
    }

    key(event) {
      const xs = this.xs(), now = xs.indexOf(this.at);
      const go = { ArrowRight: now + 1, ArrowLeft: now < 0 ? xs.length - 1 : now - 1, Home: 0, End: xs.length - 1 }[event.key];
      if (go !== undefined && xs.length) this.show(xs[Math.min(Math.max(go, 0), xs.length - 1)]);
      else if (event.key === "+" || event.key === "-") {
        const [x0, x1] = this.ranges(), middle = this.at ?? (x0 + x1) / 2, half = (x1 - x0) * (event.key === "+" ? 0.25 : 1);
        const at = this.at;
        this.look(event.key === "+" ? [middle - half, middle + half] : null);
        if (at !== null) this.show(at);
      } else if (event.key === "Escape") this.look(null);
      else return;
      event.preventDefault();
    }
  }

  const charts = [...document.querySelectorAll(".chart")].map((figure) => new Chart(figure));
  const drawAll = (width) => charts.forEach((c) => c.draw(width));

  // --- tabs ------------------------------------------------------------------------------------------------------------

  const tabs = [...document.querySelectorAll("[role=tab]")];
  function open(tab, focus) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    drawAll();
  }
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => open(tab, true));
    tab.addEventListener("keydown", (event) => {
      const go = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (go === undefined) return;
      event.preventDefault();
      open(tabs[(go + tabs.length) % tabs.length], true);
    });
  });
  open(tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) || tabs[0], false);
  window.addEventListener("resize", () => drawAll());
  window.addEventListener("beforeprint", () => charts.forEach((c) => { c.clear(); c.draw(700); }));
  window.addEventListener("afterprint", () => drawAll());

  // --- the network -----------------------------------------------------------------------------------------------------

  for (const drawing of document.querySelectorAll(".drawing")) {
    const parties = [...drawing.querySelectorAll(".party")], box = drawing.querySelector(".tip");
    parties.forEach((party, k) => {
      const tell = () => {
        const area = drawing.getBoundingClientRect(), spot = party.querySelector(".body").getBoundingClientRect();
        tip(box, party.getAttribute("aria-label"), spot.left + spot.width / 2 - area.left, spot.top - area.top);
      };
      for (const when of ["pointerenter", "focus"]) party.addEventListener(when, tell);
      for (const when of ["pointerleave", "blur"]) party.addEventListener(when, () => tip(box, ""));
      party.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = parties[(k + step + parties.length) % parties.length];
        parties.forEach((other) => other.setAttribute("tabindex", other === next ? "0" : "-1"));
        next.focus();
      });
    });
  }

  // --- light and dark --------------------------------------------------------------------------------------------------

  const theme = document.getElementById("theme"), wish = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : wish.matches;
  const say = () => { theme.textContent = dark() ? "light" : "dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  wish.addEventListener("change", say);
  say();
})();
