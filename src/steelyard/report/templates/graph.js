"use strict";
// The judgments of one prompt as a drawing: tiers from the top, arrows from better to worse, cycles in red.
// Pairs that a model has wrong are dashed.
const Graph = (() => {
  const WIDTH = 380, RADIUS = 17;
  const make = (name, attributes, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // Place the responses: a band for every tier, and in it one point, two next to each other, or a ring.
  // Single responses are shifted against those above and below, so that no arrow runs through a third response.
  const LONE = [0, 96, -96, 48, -48, 118, -118];
  const layout = (tiers, loose) => {
    const places = new Map(), bands = [];
    let top = 8;
    for (const [index, tier] of [...tiers, ...(loose.length ? [loose] : [])].entries()) {
      const ringX = Math.min(150, 60 + 14 * tier.length), ringY = tier.length > 2 ? 34 + 7 * tier.length : 0;
      const height = 2 * ringY + 2 * RADIUS + 34, middle = top + height / 2 - 5;
      tier.forEach((id, position) => {
        const angle = -Math.PI / 2 + (2 * Math.PI * position) / tier.length;
        const side = tier.length === 2 ? (position ? 85 : -85) : LONE[index % LONE.length];
        places.set(id, tier.length > 2
          ? { x: WIDTH / 2 + ringX * Math.cos(angle), y: middle + ringY * Math.sin(angle), band: index }
          : { x: WIDTH / 2 + side, y: middle, band: index });
      });
      bands.push({ top, height, isLoose: index >= tiers.length });
      top += height + 26;
    }
    return { places, bands, height: top - 18 };
  };

  // Place the responses by score, the highest on top, and from left to right by tier: an arrow that points up is an error.
  const layoutByScore = (tiers, ids, scores) => {
    const known = ids.map((id) => scores.get(id)).filter((value) => typeof value === "number");
    const low = Math.min(...known), high = Math.max(...known), height = Math.max(240, 44 * ids.length), places = new Map();
    const columns = Math.max(1, tiers.length - 1);
    for (const id of ids) {
      const score = scores.get(id), tier = tiers.findIndex((one) => one.includes(id)), isScored = typeof score === "number";
      const wanted = 60 + (WIDTH - 140) * ((tier < 0 ? columns : tier) / columns);
      const y = isScored ? 30 + (height - 60) * (high > low ? (high - score) / (high - low) : 0.5) : height + 24;
      // Equal scores of one tier would cover each other: the next one moves aside.
      const near = [...places.values()].filter((one) => Math.abs(one.y - y) < 2 * RADIUS && Math.abs(one.x - wanted) < 2 * RADIUS).length;
      places.set(id, { x: Math.min(WIDTH - 50, wanted + near * (2 * RADIUS + 8)), y, band: tier });
    }
    const hasLoose = ids.some((id) => typeof scores.get(id) !== "number");
    return { places, bands: [{ top: 4, height: height - 8, isLoose: false }, ...(hasLoose ? [{ top: height + 2, height: 44, isLoose: true }] : [])], height: height + (hasLoose ? 50 : 0) };
  };

  // A curve from rim to rim; `bend` moves its middle to one side.
  const arrow = (from, to, bend, width) => {
    const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
    const control = { x: (from.x + to.x) / 2 - (dy / length) * bend, y: (from.y + to.y) / 2 + (dx / length) * bend };
    const towards = (start, end, by) => {
      const size = Math.hypot(end.x - start.x, end.y - start.y) || 1;
      return { x: start.x + ((end.x - start.x) / size) * by, y: start.y + ((end.y - start.y) / size) * by };
    };
    const start = towards(from, control, RADIUS + 1), tip = towards(to, control, RADIUS + 3);
    const size = 7 + width, neck = towards(tip, control, size);
    const ux = (tip.x - neck.x) / size, uy = (tip.y - neck.y) / size, wide = size * 0.5;
    return {
      line: `M${start.x},${start.y}Q${control.x},${control.y},${neck.x},${neck.y}`,
      whole: `M${start.x},${start.y}Q${control.x},${control.y},${tip.x},${tip.y}`,
      head: `M${tip.x},${tip.y}L${neck.x - uy * wide},${neck.y + ux * wide}L${neck.x + uy * wide},${neck.y - ux * wide}Z`,
    };
  };

  const edge = (places, given, letters) => {
    const [first, second, numFirst, numSecond, numTies, , isInCycle] = given;
    const group = make("g", { class: isInCycle ? "cycle" : "plain" });
    const from = places.get(first), to = places.get(second);
    if (!from || !to) return group;
    const span = Math.abs(from.band - to.band);
    const bow = span > 1 && Math.abs(from.x - to.x) < 40 ? 34 + 24 * span : span > 1 ? 18 : 0;
    const kinds = [[numFirst, from, to], [numSecond, to, from]].filter(([number]) => number);
    const apart = kinds.length + (numTies ? 1 : 0) > 1 ? 16 : 0;
    const counts = `${letters.get(first)} > ${letters.get(second)}: ${numFirst}, ${letters.get(second)} > ${letters.get(first)}: ${numSecond}, =: ${numTies}`;
    group.append(make("title", {}, counts));
    for (const [number, start, end] of kinds) {
      const width = 1.3 + 0.9 * (number - 1), bend = start === from ? bow + apart : apart - bow;
      const drawn = arrow(start, end, bend, Math.min(width, 5));
      group.append(make("path", { class: "edge", d: drawn.line, "stroke-width": Math.min(width, 5) }), make("path", { class: "head", d: drawn.head }));
    }
    if (numTies) {
      const drawn = arrow(from, to, apart ? -3 : bow, 1);
      group.append(make("g", { class: "tie" }, make("path", { class: "edge", d: drawn.whole, "stroke-width": 1.3 + 0.9 * (numTies - 1) })));
    }
    return group;
  };

  // `letters` names the responses by id; `caption` gives the small text next to each (a score), `choose` is called with an id.
  // `wrong` are pairs, better first: each marks its arrow, or has one of its own where there is no judgment.
  const draw = ({ tiers, edges, ids, letters, caption, choose, label, wrong = [], scores = null }) => {
    const ranked = new Set(tiers.flat());
    const loose = ids.filter((id) => !ranked.has(id));
    const { places, bands, height } = scores ? layoutByScore(tiers, ids, scores) : layout(tiers, loose);
    const picture = make("svg", { class: "graph", viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": label });
    for (const band of bands) {
      picture.append(make("rect", { class: band.isLoose ? "band loose" : "band", x: 4, y: band.top, width: WIDTH - 8, height: band.height, rx: 14 }));
    }
    bands.forEach((band, index) => picture.append(make("text", { class: "small", x: 22, y: band.top + 16 }, band.isLoose ? "?" : scores ? "↑" : String(index + 1))));
    const isPair = (better, worse) => ([first, second]) => (first === better && second === worse) || (first === worse && second === better);
    for (const given of edges) {
      const drawn = edge(places, given, letters);
      if (wrong.some(isPair(given[0], given[1]))) drawn.classList.add("wrong");
      picture.append(drawn);
    }
    for (const [better, worse] of wrong.filter(([better, worse]) => !edges.some(isPair(better, worse)))) {
      const drawn = edge(places, [better, worse, 1, 0, 0, 1, false], letters);
      drawn.classList.add("wrong");
      drawn.querySelector("title").textContent = `${letters.get(better)} > ${letters.get(worse)}`;
      picture.append(drawn);
    }
    for (const id of ids) {
      const place = places.get(id), side = place.x < WIDTH / 2 - 1 ? -1 : 1;
      const node = make("g", { class: place.band === 0 && ranked.has(id) ? "node first" : "node", tabindex: "0", role: "button", "aria-label": `${letters.get(id)} ${caption(id)}` },
        make("title", {}, id), make("circle", { cx: place.x, cy: place.y, r: RADIUS }),
        make("text", { class: "name", x: place.x, y: place.y }, letters.get(id)),
        make("text", { class: `small score-text ${side < 0 ? "before" : "after"}`, x: place.x + side * (RADIUS + 6), y: place.y }, caption(id)));
      node.addEventListener("click", () => choose(id));
      node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(id); } });
      picture.append(node);
    }
    return picture;
  };
  return { draw, layout };
})();
