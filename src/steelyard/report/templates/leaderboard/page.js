"use strict";
// Sort the models by a column, choose the columns, and open the details of a model.
(() => {
  const board = document.querySelector(".board"), body = board.tBodies[0];
  for (const button of board.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      board.tHead.querySelectorAll("[aria-sort]").forEach((sorted) => sorted.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const isText = button.dataset.kind === "text";
      const keyed = [...body.rows].map((row) => {
        const cell = row.cells[head.cellIndex];
        return [row, cell.dataset.value === undefined ? cell.textContent : cell.dataset.value];
      });
      // What has no number stands last whichever way it is sorted.
      keyed.sort(([, one], [, other]) => {
        if (one === "" || other === "") return (one === "") - (other === "");
        return down * (isText ? one.localeCompare(other) : Number(one) - Number(other));
      });
      body.append(...keyed.map(([row]) => row));
    });
  }
  const choices = [...document.querySelectorAll("[data-show]")];
  for (const choice of choices) {
    choice.addEventListener("click", () => {
      for (const other of choices) other.setAttribute("aria-pressed", String(other === choice));
      for (const cell of board.querySelectorAll("[data-group]")) cell.hidden = cell.dataset.group !== choice.dataset.show;
    });
  }
  const open = () => {
    const model = location.hash.startsWith("#model-") && document.getElementById(location.hash.slice(1));
    if (model) { model.open = true; model.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();
})();
