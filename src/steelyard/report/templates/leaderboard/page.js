"use strict";
const board = document.getElementById("board");
const body = board.tBodies[0];
board.tHead.rows[1].querySelectorAll("button").forEach((button) => {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    board.tHead.querySelectorAll("[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
    const place = head.cellIndex;
    const isText = button.dataset.kind === "text";
    const keyed = [...body.rows].map((row) => {
      const cell = row.cells[place];
      return [row, cell.dataset.value === undefined ? cell.textContent : cell.dataset.value];
    });
    // What has no number stands last whichever way it is sorted.
    keyed.sort(([, one], [, other]) => {
      if (one === "" || other === "") return (one === "") - (other === "");
      return down * (isText ? one.localeCompare(other) : Number(one) - Number(other));
    });
    body.append(...keyed.map(([row]) => row));
  });
});
const toggle = document.getElementById("language");
const choose = (language) => {
  document.body.dataset.lang = language;
  document.documentElement.lang = language;
  toggle.textContent = language === "en" ? "中文" : "English";
};
toggle.addEventListener("click", () => choose(document.body.dataset.lang === "en" ? "zh" : "en"));
if (location.hash === "#zh" || (location.hash === "" && (navigator.language || "").startsWith("zh"))) choose("zh");
