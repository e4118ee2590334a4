"use strict";
// The list of runs: search, groups, selection; and both pages follow running runs without a reload.
(() => {
  const EVERY = 2000;
  const words = () => {
    for (const place of document.querySelectorAll("[data-word]")) place.textContent = Page.word(place.dataset.word);
    for (const place of document.querySelectorAll("[data-placeholder], select[data-label]")) {
      const text = Page.word(place.dataset.placeholder || place.dataset.label);
      if (place.dataset.placeholder) place.placeholder = text;
      place.setAttribute("aria-label", text);
    }
  };
  Page.onLanguage(words);
  words();
  const lost = document.getElementById("lost");
  const follow = (ask) => {
    let isAsking = false;
    const tick = async () => {
      if (isAsking || document.hidden) return;
      isAsking = true;
      try {
        await ask();
        lost.hidden = true;
      } catch (error) {
        lost.hidden = false;
      }
      isAsking = false;
    };
    setInterval(tick, EVERY);
    document.addEventListener("visibilitychange", tick);
  };
  const json = async (address) => {
    const answer = await fetch(address, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = Page.word("copied");
    } catch (error) { /* no clipboard: the text can be selected */ }
  });

  const live = document.getElementById("live");
  if (live && live.dataset.state !== "unreadable") {
    let shown = "";
    follow(async () => {
      const now = await json(`/runs/${live.dataset.run}/live`);
      if (now.state === "finished" || now.state === "gone") { location.reload(); return; }
      if (now.html === shown) return;
      shown = now.html;
      const open = [...live.querySelectorAll("details")].map((part) => part.open);
      live.innerHTML = now.html;
      live.querySelectorAll("details").forEach((part, place) => { part.open = Boolean(open[place]); });
    });
  }

  const section = document.getElementById("runs");
  if (!section) return;
  const list = document.getElementById("list");
  const get = (name) => document.getElementById(name);
  const rows = new Map([...list.querySelectorAll("tr[data-id]")].map((row) => [row.dataset.id, row]));
  const storedGroup = Page.stored("steelyard-view-group");
  const isMany = new Set([...rows.values()].map((row) => row.dataset.parent)).size > 1;
  get("group").checked = storedGroup ? storedGroup === "yes" : isMany;

  const groupHead = (parent) => {
    const head = document.createElement("tr"), cell = document.createElement("th");
    head.className = "part";
    cell.colSpan = 8;
    cell.scope = "rowgroup";
    cell.dir = "auto";
    cell.textContent = parent ? `${parent}/` : Page.word("view_top_folder");
    head.append(cell);
    return head;
  };
  const count = () => {
    const boxes = [...list.querySelectorAll("input:checked")];
    const evaluations = boxes.filter((box) => box.closest("tr").dataset.stage === "evaluate").length;
    get("number").textContent = boxes.length;
    get("actions").classList.toggle("open", boxes.length > 0);
    for (const name of ["compare", "leaderboard"]) get(name).disabled = evaluations < 2 || evaluations < boxes.length;
  };
  const heads = new Map();
  const arrange = () => {
    const query = get("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const stage = get("stage").value, state = get("state").value, isGrouped = get("group").checked;
    const all = [...rows.values()].sort((a, b) => b.dataset.time - a.dataset.time || (a.dataset.place < b.dataset.place ? -1 : 1));
    const chosen = all.filter((row) => (!stage || row.dataset.stage === stage) && (!state || row.dataset.state === state)
      && query.every((part) => row.dataset.text.includes(part)));
    const groups = new Map();
    for (const row of chosen) {
      const key = isGrouped ? row.dataset.parent : "";
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    const parts = [];
    for (const [parent, members] of groups) {
      if (isGrouped && !heads.has(parent)) heads.set(parent, groupHead(parent));
      if (isGrouped) parts.push(heads.get(parent));
      parts.push(...members);
    }
    list.classList.toggle("grouped", isGrouped);
    const before = list.children;
    if (before.length !== parts.length || parts.some((part, place) => part !== before[place])) list.replaceChildren(...parts);
    get("empty").hidden = rows.size > 0;
    get("nothing").hidden = rows.size === 0 || chosen.length > 0;
    // What is hidden is not selected: the buttons act on what can be seen.
    const visible = new Set(chosen);
    for (const row of all) if (!visible.has(row)) for (const box of row.querySelectorAll("input")) box.checked = false;
    count();
  };
  const stages = () => {
    const known = new Set([...get("stage").options].map((option) => option.value));
    const names = [...new Set([...rows.values()].map((row) => row.dataset.stage))].filter(Boolean).sort();
    for (const name of names) if (!known.has(name)) get("stage").append(new Option(name, name));
  };
  for (const name of ["search", "stage", "state", "group"]) get(name).addEventListener("input", arrange);
  get("group").addEventListener("input", () => Page.stored("steelyard-view-group", get("group").checked ? "yes" : "no"));
  list.addEventListener("change", count);
  get("clear").addEventListener("click", (event) => {
    event.preventDefault();
    for (const box of list.querySelectorAll("input:checked")) box.checked = false;
    count();
  });
  Page.onLanguage(() => { heads.clear(); arrange(); });
  // The browser fills fields in again on the way back.
  addEventListener("pageshow", arrange);
  stages();
  arrange();

  let version = Number(section.dataset.version);
  follow(async () => {
    const news = await json(`/changes?after=${version}`);
    if (news.token !== section.dataset.token) { location.reload(); return; }
    if (news.version === version) return;
    version = news.version;
    for (const id of news.gone) rows.delete(id);
    for (const [id, html] of Object.entries(news.rows)) {
      const holder = document.createElement("template");
      holder.innerHTML = html;
      const row = holder.content.querySelector("tr"), old = rows.get(id);
      if (old) {
        const box = row.querySelector("input"), oldBox = old.querySelector("input");
        if (box && oldBox) box.checked = oldBox.checked;
        const focus = old.contains(document.activeElement) ? document.activeElement.localName : "";
        old.replaceWith(row);
        if (focus) row.querySelector(focus)?.focus();
      }
      rows.set(id, row);
    }
    get("about").innerHTML = news.about;
    stages();
    arrange();
  });
})();
