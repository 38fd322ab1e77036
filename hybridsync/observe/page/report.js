// Charts of a report: every run in its colour, one horizontal axis for all.
(() => {
  "use strict";
  const runs = JSON.parse(document.getElementById("data").textContent).runs;
  const shown = runs.map(() => true);
  const charts = {};
  let axis = "seconds";  // where a difference shows
  let logarithmic = false;

  const AXES = {
    samples: { title: "samples", text: count },
    seconds: { title: "seconds", text: seconds },
    bytes: { title: "bytes on the slow link", text: bytes },
    step: { title: "steps", text: count },
  };

  function digits(value) {
    const size = Math.abs(value);
    return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
  }
  function scaled(value, units) {
    let i = 0;
    while (Math.abs(value) >= 1000 && i < units.length - 1) { value /= 1000; ++i; }
    const text = digits(value);
    return (text.includes(".") ? text.replace(/\.?0+$/, "") : text) + units[i];
  }
  function count(value) { return scaled(value, ["", "k", "M", "G", "T"]); }
  function bytes(value) { return scaled(value, [" B", " kB", " MB", " GB", " TB", " PB"]); }
  function seconds(value) {
    if (value < 120) return digits(value).replace(/\.0+$/, "") + " s";
    const minutes = value / 60;
    return minutes < 120 ? digits(minutes).replace(/\.0+$/, "") + " min" : digits(minutes / 60) + " h";
  }
  function percent(value) { return (value * 100).toFixed(2) + " %"; }

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // The configuration's colour, paler from seed to seed.
  function colour(run) {
    const full = run.colour.startsWith("--") ? css(run.colour) : run.colour;
    return run.strength === 100 ? full : `color-mix(in srgb, ${full} ${run.strength}%, ${css("--card")})`;
  }
  const faded = (full) => `color-mix(in srgb, ${full} 38%, transparent)`;

  // What each chart draws of one run: [kind, x, y].
  const CURVES = {
    loss: (run) => [
      { kind: "raw", x: run[axis], y: run.loss },
      { kind: "smooth", x: run[axis], y: run.smooth_loss },
      { kind: "held-out", x: run["eval_" + axis], y: run.eval_loss },
    ],
    accuracy: (run) => [{ kind: "held-out", x: run["eval_" + axis], y: run.eval_accuracy }],
    interval: (run) => [{ kind: "steps", x: run.step, y: run.interval }],
  };
  const LOOKS = {
    raw: (c) => ({ stroke: faded(c), width: 1, points: { show: false } }),
    smooth: (c) => ({ stroke: c, width: 2.25, points: { show: false } }),
    "held-out": (c) => ({ stroke: c, width: 1.75, dash: [2, 4], cap: "round", points: { show: true, size: 7, fill: css("--card"), width: 2 } }),
    steps: (c) => ({ stroke: c, width: 2.25, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }),
  };
  const VALUES = { loss: (v) => v.toFixed(4), accuracy: percent, interval: (v) => digits(v) };

  // Faint and pale curves first, so that they cover nothing.
  function curvesOf(name) {
    const order = Object.keys(LOOKS);
    return runs.flatMap((run, index) => CURVES[name](run).map((curve) => ({ ...curve, run, index })))
      .filter((curve) => curve.x.length > 0 && curve.y.some((v) => v !== null))
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || a.run.strength - b.run.strength);
  }

  // Curves have their own x; uPlot wants one x for all, rising and without repeats.
  function joined(curves) {
    return uPlot.join(curves.map(({ x, y }) => {
      const last = new Map();
      x.forEach((value, i) => { if (value !== null && y[i] !== null) last.set(value, y[i]); });
      const xs = [...last.keys()].sort((a, b) => a - b);
      return [xs, xs.map((value) => last.get(value))];
    }));
  }

  // From what should be seen whole: single training losses may leave the picture.
  function rangeOf(curves, name) {
    return (u) => {
      const { min: left, max: right } = u.scales.x;
      let low = Infinity, high = -Infinity;
      curves.forEach((curve, c) => {
        if (curve.kind === "raw" || !u.series[c + 1].show) return;
        u.data[c + 1].forEach((value, i) => {
          const x = u.data[0][i];
          if (value == null || (left != null && (x < left || x > right))) return;
          low = Math.min(low, value);
          high = Math.max(high, value);
        });
      });
      if (low > high) return [0, 1];
      if (name === "interval") return [0, Math.max(high * 1.15, 1)];
      if (name === "loss" && logarithmic) return [low / 1.15, high * 1.1];
      const room = (high - low || Math.abs(high) || 1) * 0.06;
      return [name === "loss" ? Math.max(0, low - room) : low - room, high + room];
    };
  }

  function nearest(u, series, index) {
    const values = u.data[series];
    if (values[index] != null) return index;
    for (let off = 1; off < values.length; ++off) {
      for (const i of [index - off, index + off]) {
        if (values[i] == null) continue;
        const apart = u.valToPos(u.data[0][i], "x") - u.valToPos(u.data[0][index], "x");
        return Math.abs(apart) < 24 ? i : null;
      }
    }
    return null;
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function tipRow(curve, text) {
    const row = element("p");
    const swatch = element("i", "swatch");
    swatch.style.setProperty("--c", colour(curve.run));
    const kind = { raw: "training", smooth: "smoothed", "held-out": "held-out", steps: "K" }[curve.kind];
    row.append(swatch, element("span", "", `${curve.run.label}, ${kind}`), element("b", "", text));
    return row;
  }

  function tooltip(curves, name, xText) {
    const tip = element("div", "tip");
    tip.hidden = true;
    const show = (u) => {
      const rows = curves.flatMap((curve, c) => {
        const i = u.cursor.idxs[c + 1];
        if (curve.kind === "raw" || i == null || !u.series[c + 1].show) return [];
        return [tipRow(curve, VALUES[name](u.data[c + 1][i]))];
      });
      tip.hidden = rows.length === 0 || u.cursor.left < 0;
      if (tip.hidden) return;
      tip.replaceChildren(element("p", "head", xText(u.posToVal(u.cursor.left, "x"))), ...rows);
      const right = u.cursor.left + 16 + tip.offsetWidth > u.over.clientWidth;
      tip.style.left = Math.max(0, right ? u.cursor.left - tip.offsetWidth - 16 : u.cursor.left + 16) + "px";
      tip.style.top = Math.max(0, Math.min(u.cursor.top - 20, u.over.clientHeight - tip.offsetHeight)) + "px";
    };
    return { hooks: { init: (u) => u.over.append(tip), setCursor: show } };
  }

  function axisLook(values, size) {
    return {
      stroke: css("--soft"), font: "12px system-ui, sans-serif", size,
      grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false }, values,
    };
  }

  function optionsOf(name, host, curves) {
    const x = AXES[name === "interval" ? "step" : axis];
    const log = name === "loss" && logarithmic;
    const yText = name === "accuracy" ? (v) => (v * 100).toFixed(1).replace(/\.0$/, "") + " %" : (v) => String(+v.toPrecision(4));
    return {
      width: Math.max(host.clientWidth, 120), height: host.clientHeight, legend: { show: false },
      padding: [10, 18, 0, 0],
      scales: { x: { time: false }, y: { range: rangeOf(curves, name), distr: log ? 3 : 1 } },
      series: [{}, ...curves.map((curve) => ({
        label: curve.run.label, spanGaps: true, show: shown[curve.index], ...LOOKS[curve.kind](colour(curve.run)),
      }))],
      axes: [
        { ...axisLook((u, splits) => splits.map(x.text), 34), space: 80 },
        {
          ...axisLook((u, splits) => splits.map((v) => (v == null ? "" : yText(v))), 58),
          ...(name === "interval" && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }),
        },
      ],
      cursor: { y: false, dataIdx: nearest, points: { size: 8 } },
      plugins: [tooltip(curves, name, (v) => `${x.text(v)}${name === "interval" || axis === "samples" ? " " + x.title : ""}`)],
    };
  }

  function draw(name) {
    const host = document.getElementById(name);
    charts[name]?.plot.destroy();
    delete charts[name];
    host.replaceChildren();
    const curves = curvesOf(name);
    if (curves.length === 0) {
      host.append(element("div", "empty", "nothing recorded"));
      return;
    }
    charts[name] = { curves, plot: new uPlot(optionsOf(name, host, curves), joined(curves), host) };
  }

  function drawAll() {
    Object.keys(CURVES).forEach(draw);
    document.querySelectorAll(".against").forEach((e) => { e.textContent = "against " + AXES[axis].title; });
  }

  function chooseAxis(name) {
    axis = name;
    document.querySelectorAll("[data-axis]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.axis === name));
    drawAll();
  }

  function toggleRun(button) {
    const index = Number(button.dataset.run);
    shown[index] = !shown[index];
    button.setAttribute("aria-pressed", shown[index]);
    for (const { curves, plot } of Object.values(charts)) {
      plot.batch(() => curves.forEach((curve, c) => {
        if (curve.index === index) plot.setSeries(c + 1, { show: shown[index] });
      }));
    }
  }

  function fit() {
    for (const [name, { plot }] of Object.entries(charts)) {
      const host = document.getElementById(name);
      if (host.clientWidth > 0) plot.setSize({ width: host.clientWidth, height: host.clientHeight });
    }
  }

  function forPaper(on) {
    document.documentElement.toggleAttribute("data-print", on);
    drawAll();
  }

  document.querySelectorAll("[data-axis]").forEach((b) => b.addEventListener("click", () => chooseAxis(b.dataset.axis)));
  document.querySelectorAll("[data-run]").forEach((b) => b.addEventListener("click", () => toggleRun(b)));
  document.querySelector("[data-log]").addEventListener("click", (event) => {
    logarithmic = !logarithmic;
    event.currentTarget.setAttribute("aria-pressed", logarithmic);
    draw("loss");
  });
  if (!runs.some((run) => run.bytes.some((b) => b > 0))) {
    const button = document.querySelector('[data-axis="bytes"]');
    button.disabled = true;
    button.title = "no run has sent anything between nodes";
  }
  drawAll();
  new ResizeObserver(fit).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => forPaper(true));
  addEventListener("afterprint", () => forPaper(false));
  window.hybridsync = { runs, charts, colour };
})();
