// The ranking as tiers, best first, that can be dragged: into a tier for a tie, between tiers for a place of its own.

import { make } from "./card.js";

// Read the tiers that the places on the page show: a gap with something in it is a new tier.
const read = (place) => [...place.querySelectorAll(".tier, .gap")].map((slot) => [...slot.querySelectorAll("[data-chip]")].map((chip) => chip.dataset.chip).sort()).filter((tier) => tier.length);

// Draw a ranking into `place`; `onRank(ranking)` hears of a drag, `onMove(response, step)` of an arrow key on a chip.
export const drawRanking = (place, ranking, { active, scores, words, onRank, onMove }) => {
  if (place.dataset.state === JSON.stringify([ranking, active, scores])) return;
  place.dataset.state = JSON.stringify([ranking, active, scores]);
  const chip = (response) => make("button", {
    type: "button", "data-chip": response, class: response === active ? "chip active" : "chip", "aria-label": `${response}: ${words.task_key_move}`,
    onkeydown: (event) => {
      const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      onMove(response, step);
      place.querySelector(`[data-chip="${response}"]`)?.focus();
    },
  }, response);
  const gap = () => make("span", { class: "gap", "aria-hidden": "true" });
  const slots = ranking.flatMap((tier, number) => [gap(), ...(number ? [make("span", { class: "sign", "aria-hidden": "true" }, ">")] : []), make("span", { class: "tier", role: "listitem" }, ...tier.map(chip))]);
  place.replaceChildren(...slots, ...(ranking.length ? [gap()] : []));
  if (!window.Sortable) return;
  for (const slot of place.querySelectorAll(".tier, .gap")) {
    new window.Sortable(slot, { group: "ranking", draggable: "[data-chip]", animation: window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 120, delay: 80, delayOnTouchOnly: true, onEnd: () => window.setTimeout(() => { place.dataset.state = ""; onRank(read(place)); }) });
  }
};
