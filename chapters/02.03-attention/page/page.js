"use strict";
// The page only edits and draws: every number that it shows was computed by run() of state.cpp. A state is a set of
// named texts, {draw: "numpy:1:4,4,8,8", causal: "1"}, which stands behind # in the address, and result is the answer
// to it.

const threeKeys = "Q=0.1,3,0.1,0&K=1,0,0,0;0,1,0,0;0,0,1,0&V=10,10;20,20;30,30&keys=key%200,key%201,key%202";
const examples = [  // [section of the chapter, name, state]
  ["01", "A soft lookup", "Q=0,1,0&K=1,0,0;0,1,0;0,0,1&V=1,0,0;0,1,0;0,0,1&scale=none&queries=tokyo?&keys=paris,tokyo,lima"],
  ["02", "Five random tokens", "draw=numpy:0:5,5,4,2"],
  ["03", "No scale at d_k = 64", "draw=numpy:0:6,6,64,2&scale=none"],
  ["04", "Three keys", threeKeys],
  ["05", "Causal mask", "draw=numpy:1:4,4,8,8&causal=1"],
  ["05", "Padding", "draw=numpy:2:5,5,4,4&causal=1&length=3"],
  ["05", "Nothing to see", "draw=numpy:1:4,4,4,2&mask=1111;0000;1110;1111&empty=nan"],
  ["06", "The tape", "draw=numpy:0:2,4,3,5"],
  ["10", "The Jacobian", threeKeys + "&dO=at:0,0"],
  ["11", "Backward by hand", "draw=torch:0:6,6,8,8&dO=drawn&type=float"],
  ["12", "The wrong axis", "draw=numpy:0:5,5,4,2&axis=queries"],
  ["13", "One input, three roles", "Q=1,0;1,1;0,2&K=1,0;1,1;0,2&V=1,0;1,1;0,2"],
  ["14", "Temperature", threeKeys + "&tau=0.1"],
];
const fallback = examples[3][2];

// What there is to draw: the caption, what rows and columns are, and which path of the gradient it belongs to.
const matrices = {
  Q: { says: "queries", rows: "queries", columns: "d_k", edit: true },
  K: { says: "keys", rows: "keys", columns: "d_k", edit: true },
  V: { says: "values", rows: "keys", columns: "d_v", edit: true },
  S: { says: "= Q Kᵀ", rows: "queries", columns: "keys" },
  scaled: { says: "= S / divisor", rows: "queries", columns: "keys" },
  masked: { says: "scores that count", rows: "queries", columns: "keys", press: "hide or show this score" },
  A: { says: "= softmax(masked)", rows: "queries", columns: "keys", press: "show the Jacobian here" },
  O: { says: "= A V", rows: "queries", columns: "d_v", press: "send back a gradient of 1 from here" },
  dO: { says: "arrives at the output", rows: "queries", columns: "d_v", edit: true },
  dV: { says: "= Aᵀ dO", rows: "keys", columns: "d_v", path: "v" },
  dA: { says: "= dO Vᵀ", rows: "queries", columns: "keys", path: "qk" },
  D: { says: "= Σ A ⊙ dA", rows: "queries", columns: "keys", path: "qk" },
  dS: { says: "= A ⊙ (dA − D), of the scaled scores", rows: "queries", columns: "keys", path: "qk" },
  dQ: { says: "= dS K / divisor", rows: "queries", columns: "d_k", path: "qk" },
  dK: { says: "= dSᵀ Q / divisor", rows: "keys", columns: "d_k", path: "qk" },
  J: { says: "= diag(a) − a aᵀ", rows: "a", columns: "s" },
  value: { says: "the record's value", rows: "", columns: "" },
  gradient: { says: "the gradient that reached it", rows: "", columns: "" },
};

let engine, state = {}, result, step = 0;
const views = {};  // by matrix: its shape, its cells, and what they show
const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// ---- states ------------------------------------------------------------------------------------------------

const textOf = fields => Object.entries(fields).map(([name, value]) => `${name}=${value}`).join("&");
const fieldsOf = text => Object.fromEntries(text.split("&").filter(Boolean).map(part => {
  const at = part.indexOf("=");
  return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
}));
function run(fields) {
  const text = engine.ccall("run", "string", ["string"], [textOf(fields)]), base = engine._numbers() / 8;
  return JSON.parse(text, (name, x) => {
    if (x && x.shape && "at" in x) x.data = engine.HEAPF64.slice(base + x.at, base + x.at + x.shape.reduce((a, b) => a * b, 1));
    return x;
  });
}

// The state with some fields changed; undefined takes a field away. If the engine refuses it, its message is shown, and
// the state stays what it was.
function change(fields, options = {}) {
  const next = { ...fields, ...state, ...fields };  // the changed fields are judged first
  for (const name in next) if (next[name] === undefined) delete next[name];
  const answer = run(next);
  if (answer.error) {
    showFault(answer.error, options);
    return false;
  }
  // The order of the fields stays what it was, so that equal states have equal links.
  state = Object.fromEntries([...Object.keys(state), ...Object.keys(next)].filter(name => name in next).map(name => [name, next[name]]));
  result = answer;
  clearFaults(fields, options);
  draw();
  saveLink(options.push);
  return true;
}

let saving;
function saveLink(push) {
  clearTimeout(saving);
  const save = () => history[push ? "pushState" : "replaceState"](null, "", "#" + textOf(state));
  if (push) save();
  else saving = setTimeout(save, 300);  // browsers count how often a page does this
}

// A state from an address. Every part of it that can be used is used; what cannot is shown with a message.
function load(text) {
  const chosen = /^example=(\d\d)$/.exec(text);
  if (chosen) text = (examples.find(example => example[0] === chosen[1]) || examples[3])[2];
  const faults = [];
  let fields = fieldsOf(text);
  if (!fields.draw && !fields.Q && !fields.K && !fields.V) Object.assign(fields, { ...fieldsOf(fallback), ...fields });
  let answer;
  for (let tries = 0; tries < 300 && (answer = run(fields)).error; ++tries) {
    const { field, row, column } = answer.error, rows = (fields[field] || "").split(";").map(r => r.split(","));
    const cell = row >= 0 && column >= 0 && row < 16 && column < 64;
    faults.push({ ...answer.error, typed: cell ? rows[row][column] : fields[field] });
    if (cell) {
      rows[row][column] = "0";
      fields[field] = rows.map(r => r.join(",")).join(";");
    } else if (field in fields && !["Q", "K", "V"].includes(field)) {
      delete fields[field];
    } else {
      for (const name of ["Q", "K", "V", "dO", "mask", "length", "draw"]) delete fields[name];
      Object.assign(fields, fieldsOf(fallback));
    }
  }
  if (answer.error) answer = run(fields = fieldsOf(fallback));
  state = fields, result = answer, step = 0;
  clearFaults();
  draw();
  for (const fault of faults) showFault(fault, { typed: fault.typed });
}

// ---- faults: a message at the cell, which keeps what was typed ----------------------------------------------

function faultPlace(field) {
  if (Object.hasOwn(matrices, field)) return $(`figure[data-name=${field}] .fault`);
  return $(field === "draw" ? "[data-fault=draw]" : "[data-fault=switches]");
}
function showFault({ field, message, row, column }, { typed, rows, input } = {}) {
  if (rows && rows[row]) typed = rows[row][column];
  const cell = Object.hasOwn(views, field) && views[field].cells[row * views[field].c + column];
  input = input || (row >= 0 && column >= 0 && cell ? $("input", cell) : $(`[data-field="${CSS.escape(field)}"]`));
  if (input && row >= 0 && typed !== undefined) input.value = typed;
  if (input) input.setAttribute("aria-invalid", "true");
  const place = faultPlace(field);
  place.textContent = (row >= 0 && column >= 0 ? `row ${row}, column ${column}: ` : Object.hasOwn(matrices, field) || !field ? "" : `${field}: `) + message;
  place.hidden = false;
}
// All messages, or those of the fields that have been changed.
function clearFaults(fields, { input } = {}) {
  if (fields && !all(".fault[role=alert]:not([hidden])").length) return;
  for (const place of all(".fault[role=alert]:not(#needs)")) {
    const name = place.closest("figure") && place.closest("figure").dataset.name;
    const broken = all("[aria-invalid]", place.closest("figure, form") || $("#switches"))
      .filter(e => fields && e !== input && !(name === undefined && e.dataset.field in fields));
    if (fields && broken.length) continue;
    place.hidden = true, place.textContent = "";
  }
  if (!fields) for (const name in views) views[name].shown = [];
  for (const e of all("[aria-invalid]"))
    if (!fields || e === input || e.dataset.field in fields) e.removeAttribute("aria-invalid");
}

// ---- drawing -----------------------------------------------------------------------------------------------

function short(x, digits = 3) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x), text = size !== 0 && (size < 1e-3 || size >= 1e5)
    ? x.toExponential(digits - 2).replace("e+", "e") : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−").replace("e-", "e−");
}
// All digits that tell a number from its neighbours, of the type that was computed in
function exact(x) {
  let digits = 6;
  while (state.type === "float" && digits < 10 && Math.fround(Number(x.toPrecision(digits))) !== x) ++digits;
  return !Number.isFinite(x) ? short(x) : String(state.type === "float" ? Number(x.toPrecision(digits)) : x).replace("-", "−");
}

const dimensions = tensor => tensor.shape.length === 2 ? tensor.shape : [1, tensor.shape[0] ?? 1];
function label(kind, i) {
  const own = state[kind] && state[kind].split(",")[i];
  if (own) return decoded(own);
  return kind === "queries" ? `q${i}` : kind === "keys" ? `k${i}` : kind === "a" || kind === "s" ? `${kind}${i}` : `${i}`;
}
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function build(name, r, c) {
  const matrix = matrices[name], figure = $(`figure[data-name=${name}]`), table = $("table", figure);
  table.replaceChildren();
  const head = table.createTHead().insertRow(), body = table.createTBody();
  head.append(document.createElement("th"));
  for (let j = 0; j < c; ++j) head.append(document.createElement("th"));
  for (let i = 0; i < r; ++i) {
    const row = body.insertRow(), th = document.createElement("th");
    th.scope = "row";
    if (name === "Q" || name === "K") th.append(Object.assign(document.createElement("input"), { className: "label" }));
    row.append(th);
    for (let j = 0; j < c; ++j) {
      const cell = row.insertCell();
      if (matrix.edit) {
        const input = document.createElement("input");
        input.inputMode = "decimal", input.autocomplete = "off";
        input.setAttribute("aria-label", `${name} row ${i} column ${j}`);
        cell.append(input);
      } else {
        cell.tabIndex = i + j === 0 ? 0 : -1;
        cell.append("");
      }
    }
  }
  $("small", figure).textContent = `${r} × ${c}`;
  views[name] = { r, c, cells: all("td", body), shown: [], classes: [], heads: all("th", head).slice(1), sides: all("th", body) };
  return views[name];
}

function paint(name, tensor) {
  const [r, c] = dimensions(tensor), data = tensor.data, matrix = matrices[name];
  let view = views[name];
  if (!view || view.r !== r || view.c !== c) view = build(name, r, c);
  let largest = 0;
  for (const x of data) if (Number.isFinite(x) && Math.abs(x) > largest) largest = Math.abs(x);
  const hidden = name === "masked" ? result.mask.data : null;
  for (let i = 0; i < data.length; ++i) {
    const x = data[i], cell = view.cells[i];
    let look = Number.isNaN(x) ? "nan" : name === "A" ? `w${Math.round(16 * Math.min(x, 1))}`
      : Number.isFinite(x) ? `s${largest > 0 ? Math.round(8 * x / largest) : 0}` : "";
    if (hidden && !hidden[i]) look += " hidden-score";
    if (view.classes[i] !== look) cell.className = view.classes[i] = look;
    if (!Object.is(view.shown[i], x)) {
      view.shown[i] = x;
      if (!matrix.edit) cell.firstChild.nodeValue = short(x);
      else if (cell.firstChild !== document.activeElement && !cell.firstChild.hasAttribute("aria-invalid")) cell.firstChild.value = short(x);
    }
  }
  view.heads.forEach((th, j) => setText(th, name === "D" && c === 1 ? "" : label(matrix.columns, j)));
  view.sides.forEach((th, i) => {
    const text = name === "D" && c > 1 ? "" : label(matrix.rows, i), input = th.firstElementChild;
    if (!input) return setText(th, text);
    if (input !== document.activeElement) input.value = text;
    input.setAttribute("aria-label", `name of ${text}`);
  });
}
const setText = (e, text) => { if (e.textContent !== text) e.textContent = text; };

function draw() {
  for (const name in matrices) if (result[name]) paint(name, result[name]);
  const [Lq, d_k] = result.Q.shape, [Lk, d_v] = result.V.shape, keys = state.axis !== "queries";
  for (const [name, size] of Object.entries({ Lq, Lk, d_k, d_v }))
    if ($(`[name=${name}]`) !== document.activeElement) $(`[name=${name}]`).value = size;
  for (const control of all("[data-field]")) {
    const name = control.dataset.field, value = name === "row" ? String(result.row) : state[name] ?? defaults[name];
    if (control === document.activeElement && control.tagName === "INPUT" || control.hasAttribute("aria-invalid")) continue;
    if (name === "row") {
      const n = keys ? Lq : Lk;
      if (control.length !== n) control.replaceChildren(...Array.from({ length: n }, (_, i) => new Option("", String(i))));
      [...control.options].forEach((option, i) => setText(option, label(keys ? "queries" : "keys", i)));
    } else if (control.tagName === "SELECT" && ![...control.options].some(o => o.value === value)) control.add(new Option(value, value));
    if (control.type === "checkbox") control.checked = value === "1";
    else control.value = value;
  }
  setText($("#line"), keys ? "row" : "column");
  $("#drawn").disabled = !state.draw;
  $("figure[data-name=scaled] span").textContent = `= S / ${short(result.divisor, 4)}`;
  const sums = x => Array.from(x.data, v => short(v)).join(", ");
  setText($("figure[data-name=A] .note"), `rows sum to ${sums(result.row_sums)}; columns to ${sums(result.column_sums)}`);
  for (const cell of all("#forward td.chosen")) cell.classList.remove("chosen");
  const at = /^at:(\d+),(\d+)$/.exec(state.dO || "");
  if (at) views.O.cells[at[1] * d_v + +at[2]].classList.add("chosen");
  const mask = result.mask.data, lost = [];
  for (let i = 0; i < Lq; ++i) if (!mask.slice(i * Lk, i * Lk + Lk).some(Boolean)) lost.push(i);
  $("#empty-rows").hidden = !lost.length;
  setText($("#empty-rows"), lost.map(i => `${label("queries", i)} may attend to no key, and its weights are `
    + `${[...new Set(Array.from(result.A.data.slice(i * Lk, i * Lk + Lk), x => short(x)))].join(", ")}.`).join(" "));
  setText($("#difference"), !result.by_hand
    ? "attention_backward() takes softmax over the keys and hides with −∞, so these gradients are the tape's."
    : "attention_backward() computed these by the formulas. " + (result.difference === null
      ? "A weight of NaN makes some of them NaN; on the tape, masked_fill passes no gradient to a hidden score, NaN or not."
      : `The tape's gradients of Q, K and V differ from them by at most ${short(result.difference, 2)}.`));
  setText($("#code"), result.program);
  all("#examples button").forEach((button, i) =>
    button.setAttribute("aria-pressed", String(textOf(state) === textOf(fieldsOf(examples[i][2])))));
  drawTape();
}

// ---- the formula of a cell ---------------------------------------------------------------------------------

const value = (name, i, j) => result[name].data[i * dimensions(result[name])[1] + j];
const sum = terms => terms.slice(0, 16).join(" + ") + (terms.length > 16 ? ` + … (${terms.length - 16} more)` : "");
const bracket = x => x < 0 || Object.is(x, -0) ? `(${short(x, 4)})` : short(x, 4);
// Σ over n of x·y, and the cells that go into it
function product(n, x, y) {
  const terms = [], from = [];
  for (let t = 0; t < n; ++t) {
    terms.push(`${bracket(value(...x(t)))}·${bracket(value(...y(t)))}`);
    from.push(x(t), y(t));
  }
  return [sum(terms), from];
}

// {text, from}: what the cell is, with its numbers, and the cells that it was computed from
function explain(name, i, j) {
  const [Lq, d_k] = result.Q.shape, [Lk, d_v] = result.V.shape, keys = state.axis !== "queries", d = short(result.divisor, 4);
  const over = result.divisor === 1 ? "" : ` / ${d}`, group = text => over ? `(${text})${over}` : text;
  const line = () => keys ? Array.from({ length: Lk }, (_, t) => [i, t]) : Array.from({ length: Lq }, (_, t) => [t, j]);
  const sets = {
    S: () => ["q_i · k_j", ...product(d_k, t => ["Q", i, t], t => ["K", j, t])],
    scaled: () => [`S_ij${over}`, `${bracket(value("S", i, j))}${over}`, [["S", i, j]]],
    masked: () => value("mask", i, j) ? ["the scaled score", short(value("scaled", i, j), 4), [["scaled", i, j]]]
      : ["hidden by the mask", "the fill value", []],
    A: () => {
      const scores = line().map(([a, b]) => value("masked", a, b)), top = short(Math.max(...scores), 4);
      const e = x => `exp(${short(x, 4)} − ${top.startsWith("−") ? `(${top})` : top})`;
      return ["exp(s_ij − max s) / Σ exp(s − max s)", `${e(value("masked", i, j))} / (${sum(scores.map(e))})`,
        line().map(([a, b]) => ["masked", a, b])];
    },
    O: () => ["Σ_j a_ij v_j", ...product(Lk, t => ["A", i, t], t => ["V", t, j])],
    dV: () => ["Σ_i a_ij dO_i", ...product(Lq, t => ["A", t, i], t => ["dO", t, j])],
    dA: () => ["dO_i · v_j", ...product(d_v, t => ["dO", i, t], t => ["V", j, t])],
    D: () => keys ? ["Σ_j a_ij dA_ij = dO_i · o_i", ...product(Lk, t => ["A", i, t], t => ["dA", i, t])]
      : ["Σ_i a_ij dA_ij", ...product(Lq, t => ["A", t, j], t => ["dA", t, j])],
    dS: () => {
      const D = keys ? ["D", i, 0] : ["D", 0, j];
      if (!value("mask", i, j)) return ["hidden by the mask", "no gradient passes", []];
      return ["a_ij (dA_ij − D)", `${bracket(value("A", i, j))}·(${short(value("dA", i, j), 4)} − ${bracket(value(...D))})`,
        [["A", i, j], ["dA", i, j], D]];
    },
    dQ: () => {
      const [text, from] = product(Lk, t => ["dS", i, t], t => ["K", t, j]);
      return [`Σ_j dS_ij k_j${over}`, group(text), from];
    },
    dK: () => {
      const [text, from] = product(Lq, t => ["dS", t, i], t => ["Q", t, j]);
      return [`Σ_i dS_ij q_i${over}`, group(text), from];
    },
    J: () => {
      const a = t => keys ? ["A", result.row, t] : ["A", t, result.row];
      const text = i === j ? `${bracket(value(...a(i)))}·(1 − ${bracket(value(...a(j)))})` : `−${bracket(value(...a(i)))}·${bracket(value(...a(j)))}`;
      return [i === j ? "a_m (1 − a_m)" : "− a_m a_l", text, [a(i), a(j)]];
    },
  };
  const x = tensorOf(name).data[i * views[name].c + j];
  if (!sets[name]) return { text: `${name}[${i}, ${j}] = ${exact(x)}`, from: [] };
  const [formula, text, from] = sets[name]();
  return { text: `${name}[${i}, ${j}] = ${formula} = ${text} = ${exact(x)}`, from };
}
function tensorOf(name) {
  const record = result.tape[order()[step]];
  return name === "value" ? record.value : name === "gradient" ? record.gradient : result[name];
}

function place(cell) {  // [matrix, row, column] of a table cell
  const figure = cell && cell.closest("figure");
  return figure && cell.closest("tbody") ? [figure.dataset.name, cell.parentNode.rowIndex - 1, cell.cellIndex - 1] : null;
}
function point(cell) {
  const at = place(cell);
  if (!at || at[2] < 0) return;
  for (const e of all("td.from")) e.classList.remove("from");
  const { text, from } = explain(...at), press = matrices[at[0]].press;
  $("#formula").textContent = text + (press ? `   [Enter or click: ${press}]` : "");
  for (const [name, i, j] of from) views[name].cells[i * views[name].c + j].classList.add("from");
}

// ---- the tape ----------------------------------------------------------------------------------------------

// The records as they are stepped through: all of them forward, and then back those that a gradient reached.
const reached = () => result.tape.map((_, i) => i).filter(i => result.tape[i].gradient).reverse();
const order = () => [...result.tape.keys(), ...reached()];
const pathOf = record => record.name === "V" ? "path-v" : record.name === "O" ? "" : "path-qk";
const called = i => result.tape[i].name || `#${i}`;

function drawTape() {
  const n = result.tape.length, steps = order(), back = steps.slice(n);
  step = Math.max(0, Math.min(step, steps.length - 1));
  const at = steps[step], record = result.tape[at], backward = step >= n, list = $("#records");
  while (list.children.length > n) list.lastChild.remove();
  result.tape.forEach((r, i) => {
    if (!list.children[i]) list.append(Object.assign(document.createElement("li"), { innerHTML: "<button type=button></button>" }));
    const button = list.children[i].firstChild, lit = backward && back.slice(0, step - n + 1).includes(i);
    setText(button, `${i} ${r.name ? r.name + (r.op === "watched" ? "" : " = ") : ""}${r.op === "watched" ? "" : r.op} ${r.shape}`);
    button.className = [i <= at && !backward ? "done" : "", lit ? `lit ${pathOf(r)}` : "", i === at ? "here" : ""].join(" ").trim();
    button.setAttribute("aria-current", i === at ? "step" : "false");
  });
  setText($("#where"), `step ${step + 1} of ${steps.length}, ${backward ? "backward" : "forward"}`);
  const users = result.tape.map((r, i) => [r, i]).filter(([r]) => r.inputs.includes(at));
  setText($("#record"), !backward
    ? record.op === "watched" ? `${record.name} is watched: its gradient is kept.`
      : `${record.op}: ${record.formula}, of ${record.inputs.map(called).join(" and ")}. Pullback: ${record.pullback}.`
    : at === back[0] ? `The gradient starts at ${called(at)} with dO.`
      : `From ${users.map(([r, i]) => `${called(i)} (${r.op}: ${r.pullback})`).join(" and ")}, the gradient reaches ${called(at)}.`);
  paint("value", record.value);
  const figure = $("figure[data-name=gradient]");
  figure.hidden = !backward;
  figure.className = backward ? pathOf(record).replace("path", "via") : "";
  if (backward) paint("gradient", record.gradient);
}
function stepTo(to) {
  step = to;
  drawTape();
}

// ---- editing -----------------------------------------------------------------------------------------------

const defaults = { scale: "sqrt", tau: "1", causal: "0", length: "", axis: "keys", fill: "-inf", empty: "zero", type: "double" };

// The numbers of an input as texts, in double whatever the page shows.
function rowsOf(name, answer = state.type === "float" ? run({ ...state, type: "double" }) : result) {
  const tensor = answer[name], c = tensor.shape[1];
  return Array.from({ length: tensor.shape[0] }, (_, i) => Array.from(tensor.data.slice(i * c, i * c + c), String));
}
const joined = rows => rows.map(row => row.join(",")).join(";");

function setCell(input, text) {
  const [name, i, j] = place(input.closest("td")), rows = rowsOf(name);
  if (/[,;&=]/.test(text)) return void showFault({ field: name, message: `"${text}" is not a number`, row: i, column: j });
  rows[i][j] = text.trim();
  return change({ [name]: joined(rows) }, { input });
}

// Q, K and V cut or filled with zeros to these sizes; what no longer fits is left out.
function resized({ Lq, Lk, d_k, d_v }, given = {}) {
  const fit = (rows, r, c) => Array.from({ length: r }, (_, i) => Array.from({ length: c }, (_, j) => (rows[i] || [])[j] ?? "0"));
  const fields = { ...given };
  for (const [name, r, c] of [["Q", Lq, d_k], ["K", Lk, d_k], ["V", Lk, d_v]])
    if (!(name in given)) fields[name] = joined(fit(rowsOf(name), r, c));
  return { ...fields, dO: undefined, mask: undefined, length: undefined, draw: undefined };
}
function sizes() {
  const [Lq, d_k] = result.Q.shape, [Lk, d_v] = result.V.shape;
  return { Lq, Lk, d_k, d_v };
}

// Numbers as NumPy and PyTorch print them, or as a spreadsheet copies them. Gives nothing for a single number.
function pasted(text) {
  const inside = text.replace(/^\s*(array|tensor)\(/, "").replace(/,?\s*(dtype=[^)]*|grad_fn=[^)]*)?\)\s*$/, "").trim();
  const lines = (inside.includes("[") ? inside.split("]") : inside.split("\n"))
    .map(line => line.replace(/[[\]]/g, " ").trim().replace(/^,/, "").trim()).filter(Boolean);
  const rows = lines.map(line => line.split(/[\s,]+/).filter(Boolean));
  return rows.length > 1 || rows.some(row => row.length > 1) || inside.includes("[") ? rows : null;
}

function onPaste(event) {
  const input = event.target.closest("td input"), rows = pasted(event.clipboardData.getData("text"));
  if (!input || !rows) return;
  event.preventDefault();
  const name = place(input.closest("td"))[0], r = rows.length, c = rows[0] ? rows[0].length : 0;
  const text = joined(rows.map(row => row.map(x => x.replace(/[&=;]/g, "?"))));
  const was = result[name].shape, same = was[0] === r && was[1] === c, now = sizes();
  if (name === "Q") now.Lq = r, now.d_k = c;
  if (name === "K") now.Lk = r, now.d_k = c;
  if (name === "V") now.Lk = r, now.d_v = c;
  input.blur();
  if (r > 16 || c > 64 || same || name === "dO") change({ [name]: text }, { rows });
  else change(resized(now, { [name]: text }), { rows });
}

function onInput(event) {
  const e = event.target, field = e.dataset.field;
  if (e.closest("td")) return void setCell(e, e.value);
  if (e.classList.contains("label")) {
    const [kind, n] = place(e.closest("th"))[0] === "Q" ? ["queries", result.Q.shape[0]] : ["keys", result.K.shape[0]];
    const names = Array.from({ length: n }, (_, i) => label(kind, i));
    names[e.closest("tr").rowIndex - 1] = e.value;
    return void change({ [kind]: names.map(encodeURIComponent).join(",") });
  }
  if (e.name in sizes()) {
    const now = { ...sizes(), [e.name]: Number(e.value) };
    if (!(now[e.name] >= 1)) return;
    const drawn = state.draw && !state.Q && !state.K && !state.V && state.draw.split(":");
    const limit = e.name.startsWith("L") ? 16 : 64;
    if (now[e.name] > limit) return showFault({ field: "draw", message: `${e.name} is at most ${limit}` }, { input: e });
    if (drawn) change({ draw: `${drawn[0]}:${drawn[1]}:${now.Lq},${now.Lk},${now.d_k},${now.d_v}`, mask: undefined, length: undefined, dO: undefined }, { input: e });
    else change(resized(now), { input: e });
  }
  if (field) {
    const value = e.type === "checkbox" ? (e.checked ? "1" : "0") : e.value.trim();
    change({ [field]: value === defaults[field] || value === "" ? undefined : value }, { input: e });
  }
}

function onDraw(event) {
  event.preventDefault();
  const form = event.target.elements, { Lq, Lk, d_k, d_v } = sizes();
  change({ draw: `${form.generator.value}:${form.seed.value.trim()}:${Lq},${Lk},${d_k},${d_v}`, Q: undefined, K: undefined,
    V: undefined, dO: state.dO && !/^(ones|drawn|at:)/.test(state.dO) ? undefined : state.dO }, { push: true, input: form.seed });
}

// Enter or a click on a cell of a heat map
function press(cell) {
  const [name, i, j] = place(cell), { Lq, Lk } = sizes();
  if (name === "O") change({ dO: state.dO === `at:${i},${j}` ? undefined : `at:${i},${j}` });
  if (name === "A") change({ row: String(state.axis === "queries" ? j : i) });
  if (name === "masked") {
    const rows = state.mask ? state.mask.split(";") : Array(Lq).fill("1".repeat(Lk));
    rows[i] = rows[i].slice(0, j) + (rows[i][j] === "1" ? "0" : "1") + rows[i].slice(j + 1);
    change({ mask: rows.every(row => !row.includes("0")) ? undefined : rows.join(";") });
  }
  if (matrices[name].press) point(cell);
}

const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
function onKey(event) {
  const e = event.target, arrow = arrows[event.key];
  if (e.matches("td[tabindex]")) {
    if (event.key === "Enter" || event.key === " ") event.preventDefault(), press(e);
    if (!arrow) return;
    event.preventDefault();
    const [name, i, j] = place(e), view = views[name], r = i + arrow[0], c = j + arrow[1];
    if (r < 0 || c < 0 || r >= view.r || c >= view.c) return;
    e.tabIndex = -1;
    view.cells[r * view.c + c].tabIndex = 0;
    view.cells[r * view.c + c].focus();
  } else if (e.matches("td input")) {
    const [name, i, j] = place(e.closest("td"));
    if (event.key === "Escape") {
      e.value = before;
      setCell(e, before);
    } else if (event.key === "Enter") {
      const next = views[name].cells[(i + 1) % views[name].r * views[name].c + j];
      next.firstChild.focus();
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      nudge(e, value(name, i, j) - arrow[0] * (event.shiftKey ? 1 : event.altKey ? 0.01 : 0.1));
    }
  } else if (e.closest("#records, #steps") && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    event.preventDefault();
    stepTo(step + arrow[1]);
  }
}
function nudge(input, x) {
  input.value = String(Number(x.toFixed(3)));
  setCell(input, input.value);
}

let before;    // what stood in the cell when it was entered: Escape brings it back
let drag;      // a number that is being dragged: {input, x, start}
function onPointerDown(event) {
  const input = event.target.closest && event.target.closest("td input");
  if (!input || event.button !== 0 || event.pointerType === "touch" && input !== document.activeElement) return;
  const [name, i, j] = place(input.closest("td"));
  drag = { input, x: event.clientX, start: value(name, i, j), moved: false };
}
function onPointerMove(event) {
  if (!drag) return;
  const by = event.clientX - drag.x;
  if (!drag.moved && Math.abs(by) < 4) return;
  if (!drag.moved) drag.moved = true, drag.input.setPointerCapture(event.pointerId);
  event.preventDefault();
  nudge(drag.input, drag.start + Math.round(by) * (event.shiftKey ? 0.2 : 0.02));
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // from file:// a browser may refuse; the old way works there
    const area = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("#copied").textContent = `${what} is copied.`;
}

// ---- the start ---------------------------------------------------------------------------------------------

function prepare() {
  for (const box of all("[data-figures]"))
    for (const name of box.dataset.figures.split(" ")) {
      const { says, path } = matrices[name];
      box.insertAdjacentHTML("beforeend", `<figure data-name="${name}"${path ? ` class="via-${path}"` : ""}>
        <figcaption><b>${name}</b> <span>${says}</span> <small></small></figcaption>
        <div class="scroll"><table aria-label="${name} ${says}"></table></div>
        <p class="note"></p><p class="fault" role="alert" hidden></p></figure>`);
    }
  let rules = "";
  for (let n = 1; n <= 16; ++n) rules += `.w${n}{background-color:rgb(var(--seq)/${n / 16})}` + (n > 12 ? `.w${n}{color:var(--on)}` : n > 9 ? `.w${n}{color:var(--on-middle)}` : "");
  for (let n = 1; n <= 8; ++n)
    for (const [sign, colour] of [["", "pos"], ["-", "neg"]])
      rules += `.s${sign}${n}{background-color:rgb(var(--${colour})/${n / 9})}` + (n > 7 || n > 6 && !sign ? `.s${sign}${n},.s${sign}${n} input{color:var(--on)}` : n > 5 && sign ? `.s${sign}${n},.s${sign}${n} input{color:var(--on-middle)}` : "");
  document.head.append(Object.assign(document.createElement("style"), { textContent: rules }));
  for (const [section, name] of examples)
    $("#examples").append(Object.assign(document.createElement("button"), { type: "button", textContent: name,
      title: `make run S=${section}` }));
}

function listen() {
  const main = $("main");
  $("#examples").addEventListener("click", event => {
    const which = all("#examples button").indexOf(event.target);
    if (which < 0) return;
    clearTimeout(saving);
    load(examples[which][2]);
    saveLink(true);
  });
  main.addEventListener("input", event => { if (event.target.tagName !== "SELECT") onInput(event); });
  main.addEventListener("change", event => { if (event.target.tagName === "SELECT") onInput(event); });
  main.addEventListener("paste", onPaste);
  main.addEventListener("keydown", onKey);
  main.addEventListener("pointerdown", onPointerDown);
  main.addEventListener("pointermove", onPointerMove);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { drag = null; });
  main.addEventListener("pointerover", event => { if (!drag) point(event.target.closest("td")); });
  main.addEventListener("focusin", event => {
    const cell = event.target.closest("td");
    if (cell && event.target.matches("input")) {
      const [name, i, j] = place(cell);
      before = rowsOf(name)[i][j];
      if (!event.target.hasAttribute("aria-invalid")) event.target.value = exact(value(name, i, j)).replace("−", "-");
    }
    point(cell);
  });
  main.addEventListener("focusout", event => {
    if (event.target.matches("td input:not([aria-invalid])")) event.target.value = short(value(...place(event.target.closest("td"))));
  });
  main.addEventListener("click", event => {
    const cell = event.target.closest("td[tabindex]"), button = event.target.closest("button");
    if (cell) press(cell);
    if (!button) return;
    const record = all("#records button").indexOf(button), steps = order().length;
    if (record >= 0) stepTo(record);
    if (button.dataset.step) stepTo({ first: 0, back: step - 1, on: step + 1, last: steps - 1 }[button.dataset.step]);
    if (button.id === "ones") change({ dO: undefined });
    if (button.id === "drawn") change({ dO: "drawn" });
    if (button.id === "copy-program") copy(result.program, "The program");
    if (button.id === "copy-link") copy(location.href.split("#")[0] + "#" + textOf(state), "The link");
  });
  $("#draw").addEventListener("submit", onDraw);
  $("#switches").addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => load(location.hash.slice(1)));
}

function needs(message) {
  $("#needs").textContent = message;
  $("#needs").hidden = false;
}

prepare();
if (typeof WebAssembly !== "object") needs("This page computes in the browser and needs WebAssembly, which is not available "
  + "here. Any browser since 2018 has it, unless it was switched off (Firefox: javascript.options.wasm; lockdown modes).");
else requestAnimationFrame(() => setTimeout(() => loadEngine().then(loaded => {  // the page is painted first
  engine = loaded;
  load(location.hash.slice(1));
  listen();
  document.body.dataset.ready = "yes";
}).catch(error => needs(`The engine did not start: ${error}`))));
