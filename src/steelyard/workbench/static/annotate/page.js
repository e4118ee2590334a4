// The annotator's page: what is entered goes into the answer, what follows from it onto the card and the bar.

import { compared, discarded, emptyAnswer, impliedRanking, isSameRanking, judgedOf, marked, moved, nextStep, scored, uncompared, undecided } from "./answer.js";
import { buildCard, fill, updateCard } from "./card.js";
import { makeClock } from "./clock.js";
import { ALL_KEYS, actionOf, belongsTo } from "./keys.js";
import { makeLoader } from "./loading.js";
import { closing, openMarking, openReasons } from "./marking.js";
import { makeDrafts, makeOutbox, makeStore } from "./outbox.js";
import { send } from "./server.js";
import { drawBanner, drawBar, drawEmpty, drawGuideline, drawKeys, drawProgress } from "./surroundings.js";

const root = document.querySelector("#annotator"), setup = JSON.parse(root.dataset.setup);
const { words, rubric } = setup;
const STACKED = 832;
const byId = (id) => document.getElementById(id);
const dialog = byId("dialog"), place = byId("task");
const store = makeStore(window.localStorage);
const later = (run, wait) => window.setTimeout(run, wait);
const clock = makeClock(() => Date.now(), () => document.visibilityState === "visible");

let card = null, answer = emptyAnswer(), active = null, isByHand = false, history = [], guidelines = {}, reason = "loading";

const tools = { words, rubric, act: (action) => act(action) };
const outbox = makeOutbox({ store, person: setup.person, send, later, onChange: (state) => drawBanner(byId("banner"), state, { words, retry: () => outbox.retry(), forgive: () => outbox.forgive() }) });
const drafts = makeDrafts({ store, person: setup.person, send, later, clock });
const loader = makeLoader({
  project: setup.project, outbox, send,
  prepare: (task, versions) => { Object.assign(guidelines, versions); return buildCard(task, tools); },
  onTasks: (why) => { reason = why; if (!card) advance(); },
});

const stepOf = () => nextStep(answer, card.shown);
const firstUnscored = () => judgedOf(answer, card.shown).find((response) => !(response in answer.scores));

const paint = () => {
  if (!card) return;
  const step = stepOf();
  updateCard(card, { answer, active, asked: step.kind === "compare" || step.kind === "settle" ? step.responses : [] }, tools);
  drawBar({ step, answer, active, shown: card.shown, canUndo: history.length > 0 }, { words, rubric, act, onRank: (ranking) => change({ ...answer, ranking }, { byHand: true }), onMove: (response, direction) => act({ name: "move", value: direction, response }) });
};

// Take over a changed answer: remember the one before for undo, let the ranking follow, save, paint.
const change = (changed, { byHand = isByHand, focus = active } = {}) => {
  history.push({ answer, active, isByHand });
  const implied = impliedRanking(changed, card.shown);
  // A ranking by hand holds as long as it names the responses that are judged, and says something of its own.
  const isWhole = changed.ranking.flat().length === judgedOf(changed, card.shown).length;
  isByHand = byHand && isWhole && !isSameRanking(implied, changed.ranking);
  answer = isByHand ? changed : { ...changed, ranking: implied || [] };
  const isElsewhere = focus !== active;
  active = focus;
  drafts.save(card.task.assignment, answer);
  paint();
  // Responses under each other: the next one comes into sight.
  if (isElsewhere && stepOf().kind === "score" && window.innerWidth <= STACKED) card.responses.get(active).node.scrollIntoView({ block: "start" });
};

const advance = () => {
  card = loader.take();
  if (!card) {
    place.replaceChildren();
    root.dataset.state = "empty";
    drawEmpty(byId("empty"), reason, { words, retry: () => loader.fill() });
    return;
  }
  const draft = drafts.unsent(card.task.assignment) || card.task.draft;
  answer = { ...emptyAnswer(), ...(draft || {}) };
  history = [];
  const implied = impliedRanking(answer, card.shown);
  isByHand = answer.ranking.length > 0 && !isSameRanking(implied, answer.ranking);
  active = firstUnscored() || judgedOf(answer, card.shown)[0] || null;
  root.dataset.state = "task";
  place.replaceChildren(card.node);
  window.scrollTo(0, 0);
  drawGuideline(byId("guideline-text"), guidelines[card.task.guideline], words);
  paint();
  loader.fill();
};

const submit = () => {
  if (stepOf().kind !== "submit") { byId("step").animate?.([{ opacity: 0.3 }, { opacity: 1 }], 250); return; }
  const { assignment, guideline } = card.task;
  drafts.forget(assignment);
  outbox.put({ assignment, guideline, answer, seconds: clock.take() });
  advance();
  outbox.flush().then(() => { loader.fill(); refreshProgress(); });
};

const score = ({ value, response = active }) => {
  if (response === null) return;
  const changed = scored(answer, response, value);
  const order = [...card.shown.slice(card.shown.indexOf(response)), ...card.shown];
  const next = order.find((each) => !(each in changed.scores) && !(each in changed.discarded));
  change(changed, { focus: next || response });
};

const moveActive = ({ value, response = active }) => {
  if (!answer.ranking.length || !response) return;
  change({ ...answer, ranking: moved(answer.ranking, response, value) }, { byHand: true, focus: response });
};

// Settle a contradiction the short way: compare a circle again, or take the ranking that follows.
const reset = () => {
  const step = stepOf();
  if (step.problem === "circle") change(uncompared(answer, step.responses), { byHand: false });
  else if (isByHand) change({ ...answer, ranking: [] }, { byHand: false });
};

const undo = () => {
  const before = history.pop();
  if (!before) return;
  ({ answer, active, isByHand } = before);
  drafts.save(card.task.assignment, answer);
  paint();
};

const askDiscard = ({ response = active }) => {
  if (response === null) return;
  const reasons = setup.discard_reasons.map((value) => rubric.discards.find((each) => each.value === value) || { value, label: value });
  openReasons(dialog, fill(words.task_discard_title, { id: response }), reasons, { words, onChoice: (value) => {
    const changed = discarded(answer, response, value);
    const next = judgedOf(changed, card.shown).find((each) => !(each in changed.scores));
    change(changed, { focus: next || judgedOf(changed, card.shown)[0] || response });
  } });
};

const mark = ({ response = active }) => {
  const view = card.task.responses.find(({ id }) => id === response);
  if (view) openMarking(dialog, view, { words, rubric, onSpan: (span) => change(marked(answer, response, [...(answer.spans[response] || []), span])) });
};

const ACTIONS = {
  score, submit, undo, reset, mark,
  compare: ({ value }) => { const step = stepOf(); if (step.kind === "compare") change(compared(answer, ...step.responses, value)); },
  move: moveActive,
  focus: ({ value }) => {
    const judged = card.shown, at = judged.indexOf(active);
    active = judged[(at + value + judged.length) % judged.length];
    paint();
    card.responses.get(active).node.scrollIntoView({ block: "nearest" });
  },
  activate: ({ response }) => { if (response !== active) { active = response; paint(); } },
  discard: askDiscard,
  "cannot judge": () => openReasons(dialog, words.task_cannot_title, rubric.cannot_judge, { words, onChoice: (value) => change(undecided(answer, value)) }),
  unmark: ({ response, value }) => change(marked(answer, response, answer.spans[response].filter((_, number) => number !== value))),
  unfold: () => card.unfold.click(),
  guideline: () => setGuideline(!root.classList.contains("with-guideline")),
  keys: () => { dialog.onkeydown = null; drawKeys(dialog, ALL_KEYS, words, closing(dialog, words)); dialog.showModal(); },
};

const act = (action) => {
  clock.touch();
  if (!card && !["keys", "guideline"].includes(action.name)) return;
  ACTIONS[action.name](action);
};

const setGuideline = (isOpen) => {
  root.classList.toggle("with-guideline", isOpen);
  byId("guideline").hidden = !isOpen;
  byId("guideline-button").setAttribute("aria-expanded", String(isOpen));
  store.set("steelyard-guideline", isOpen);
};

const refreshProgress = async () => {
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  const { status, data } = await send(`/annotate/progress?project=${setup.project}&since=${midnight}`);
  if (status === 200) drawProgress(byId("own-progress"), data, words);
};

document.addEventListener("keydown", (event) => {
  clock.touch();
  // What was in a dialog keeps the focus until the next frame.
  const isFree = dialog.contains(event.target) || !belongsTo(event.target, event.key);
  if (dialog.open || event.defaultPrevented || event.isComposing || !isFree) return;
  const action = actionOf(event, card ? stepOf() : { kind: "none" });
  if (!action) return;
  event.preventDefault();
  if (!event.repeat || action.name === "focus" || action.name === "move") act(action);
});
// After a click the keys belong to the card again, not to the button.
root.addEventListener("click", (event) => { const button = event.target.closest("button"); if (event.detail > 0 && button) button.blur(); });
for (const name of ["pointermove", "wheel", "touchstart", "scroll"]) window.addEventListener(name, clock.touch, { passive: true });
window.addEventListener("online", () => { outbox.retry(); loader.fill(); });
window.addEventListener("pagehide", () => drafts.flush());
document.addEventListener("visibilitychange", () => { clock.tick(); if (document.visibilityState === "hidden") drafts.flush(); else outbox.retry(); });
for (const button of document.querySelectorAll("[data-action]")) button.addEventListener("click", () => act({ name: button.dataset.action }));
window.setInterval(clock.tick, 1000);
window.setInterval(() => { if (card) drafts.beat(card.task.assignment, answer); }, 30000);
window.setInterval(() => { if (!card || !loader.size()) loader.fill(); }, 10000);

setGuideline(store.get("steelyard-guideline") === true);
outbox.flush().then(() => loader.fill());
refreshProgress();
