"use strict";
// Asks this node, and nobody else, for its state once a second. All text goes in as text, never as markup.
const at = (id) => document.getElementById(id);
const say = (id, text) => { if (at(id).textContent !== text) at(id).textContent = text; };
const short = (x) => (x === null || x === undefined ? "–" : Number(x.toPrecision(3)).toString());

function element(kind, fields, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(fields)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function how(state, name) {
  if (name === state.node) return "self";
  const one = state.neighbours[name];
  return one === undefined ? "" : one.standing;
}

function map(state) {
  const { members, links, hub } = state.map;
  const around = members.filter((name) => name !== hub);
  const place = {};
  around.forEach((name, k) => {
    const angle = (2 * Math.PI * k) / around.length - Math.PI / 2;
    place[name] = [90 * Math.cos(angle), 90 * Math.sin(angle)];
  });
  if (hub !== null) place[hub] = [0, 0];
  const parts = links.map(([a, b]) => {
    const kind = a === state.node ? how(state, b) : b === state.node ? how(state, a) : "";
    return element("line", { x1: place[a][0], y1: place[a][1], x2: place[b][0], y2: place[b][1], class: kind });
  });
  const radius = Math.max(2, Math.min(9, 160 / members.length));
  for (const name of members) {
    const [x, y] = place[name];
    const dot = element("circle", { cx: x, cy: y, r: radius, class: how(state, name), "data-member": name });
    dot.append(element("title", {}, name));
    parts.push(dot);
    if (members.length <= 40) parts.push(element("text", { x: 1.13 * x, y: 1.13 * y + (y > 0 ? 14 : -8) }, name));
  }
  at("map").replaceChildren(...parts);
}

function neighbours(state) {
  at("neighbours").replaceChildren(...Object.entries(state.neighbours).map(([name, one]) => {
    const row = document.createElement("tr");
    const word = one.misbehaved ? "misbehaved: " + one.misbehaved : one.trouble;
    const cells = [name, one.shown, word, Math.floor(state.certificate_days[name]) + " days"];
    cells.forEach((text, k) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      if (k === 1) cell.className = one.standing;
      row.append(cell);
    });
    return row;
  }));
}

function about(state) {
  const lines = [
    ["Federation", state.federation], ["Run", state.run], ["Method", state.method], ["Guarantee", state.guarantee],
    ["Distance to the neighbours", short(state.consensus_distance)], ["Turned away", String(state.refused)],
    ["Own certificate", Math.floor(state.certificate_days[state.node]) + " days left"],
    ...(state.relay ? [["Relay", state.relay]] : []),
  ];
  at("about").replaceChildren(...lines.flatMap(([name, value]) => {
    const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
    dt.textContent = name;
    dd.textContent = value;
    return [dt, dd];
  }));
}

function show(state) {
  document.title = `${state.node}: ${state.state}`;
  say("title", state.node);
  say("subtitle", `in ${state.federation}`);
  say("state", state.state);
  say("round", `${state.round} of ${state.rounds}`);
  at("bar").value = state.round / state.rounds;
  say("pace", state.seconds_per_round === null ? "–" : `${short(state.seconds_per_round)} s`);
  say("spent", state.spent_epsilon === null ? "nothing is protected" : `ε = ${short(state.spent_epsilon)}`);
  say("left", state.left_epsilon === null ? "" : `${short(state.left_epsilon)} left for other runs`);
  const down = Object.keys(state.neighbours).filter((name) => state.neighbours[name].standing === "down");
  const words = [state.reason, state.notice];
  if (down.length && !["finished", "stopped", "failed"].includes(state.state)) words.push(`${down.join(", ")} down`);
  for (const [name, why] of Object.entries(state.papers)) words.push(`papers of ${name} are not taken: ${why}`);
  if (state.age > 10) words.push(`no word of the node for ${Math.round(state.age)} s`);
  warn(words.filter(Boolean).join("; "));
  map(state);
  neighbours(state);
  about(state);
}

function warn(text) {
  say("alert", text);
  at("alert").hidden = text === "";
}

async function look() {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    const state = await answer.json();
    if (state.node) show(state);
  } catch {
    warn("The node does not answer: it has ended, or this page is of another one.");
  }
  setTimeout(look, 1000);
}
look();
