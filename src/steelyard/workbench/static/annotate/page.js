// The annotator's page: what is entered goes into the answer, what follows from it onto the card and the bar.

import { emptyAnswer, marked, undecided } from "./answer.js";
import { buildCard, fill, make, marksOf, updateCard } from "./card.js";
import { IDLE_MS, makeAbsence, makeClock } from "./clock.js";
import { form } from "./form.js";
import { belongsTo, isHeld } from "./keys.js";
import { makeLoader } from "./loading.js";
import { closing, openMarking, openReasons } from "./marking.js";
import { makeDrafts, makeOutbox } from "./outbox.js";
import { giveBack, send } from "./server.js";
import { makeJournal, makeStore, storageOf } from "./store.js";
import { READING_MS, drawAsked, drawBanner, drawBar, drawEmpty, drawGuideline, drawKeys, drawProgress, drawSaving, showNotice } from "./surroundings.js";
import { makeTabs } from "./tabs.js";
import { drawEnd, drawRound, showFeedback } from "./qualification.js";
import { triple } from "./triple.js";

const ASLEEP_MS = 60000, FIRST_FILL_MS = 1500;
const root = document.querySelector("#annotator"), setup = JSON.parse(root.dataset.setup);
const { words, rubric, is_qualification: isQualification } = setup;
// What is entered, and in which order: questions one after the other, or the scores and the ranking of a triple.
const flowOf = (task) => task.questions.length ? form : triple;
const byId = (id) => document.getElementById(id);
const dialog = byId("dialog"), place = byId("task");
const later = (run, wait) => window.setTimeout(run, wait);
const store = makeStore(storageOf(window), makeJournal((...named) => window.indexedDB.open(...named), later));
// Another workbench may be served at the same address, with the same numbers of people and tasks.
const owner = `${setup.workbench}-${setup.person}`;
const tabs = makeTabs({ locks: navigator.locks, channel: window.BroadcastChannel ? new BroadcastChannel(`steelyard-${owner}-${setup.project}`) : null, person: owner });
// Not the time of day, which a person or the network may set while somebody works.
const clock = makeClock(() => performance.now(), () => document.visibilityState === "visible");

let card = null, shownAt = 0, state = { answer: emptyAnswer(), active: null, isByHand: false }, history = [], merged = null, guidelines = {}, reason = "loading", round = null;

const tools = { words, rubric, act: (action) => act(action) };
// Where what was entered is: answers and drafts that wait, why, and when the workbench stored something last.
const saving = { answers: {}, draft: {}, at: null };
const paintSaving = () => {
  const all = [saving.answers, saving.draft];
  drawSaving(byId("saving"), { isWaiting: all.some(({ isWaiting }) => isWaiting), problem: all.some(({ isWaiting, problem }) => isWaiting && problem), isKept: all.every(({ isKept }) => isKept !== false), at: saving.at }, words);
};
const outbox = makeOutbox({
  store, person: owner, former: setup.person, send, later, alone: tabs.alone,
  onChange: (state) => {
    drawBanner(byId("banner"), state, { words, retry: () => outbox.retry(), forgive: () => outbox.forgive() });
    if (saving.answers.isWaiting && !state.waiting) saving.at = new Date();
    saving.answers = { isWaiting: state.waiting > 0, problem: state.problem, isKept: state.isKept };
    paintSaving();
  },
});
// Drafts of a qualification stay in the browser: its tasks are nobody else's.
const drafts = makeDrafts({
  store, person: owner, send: isQualification ? null : send, later, clock,
  onChange: (state) => { if (state.isStored) saving.at = new Date(); saving.draft = state; paintSaving(); },
  onOutcome: (assignment, outcome) => { if (outcome !== "open" && card?.task.assignment === assignment) leave(outcome); },
});
const loader = makeLoader({
  path: isQualification ? "/annotate/qualification/tasks" : "/annotate/tasks", project: setup.project, person: setup.person, outbox, send, tabs,
  prepare: (task, versions) => { Object.assign(guidelines, versions); return buildCard(task, flowOf(task), tools); },
  onTasks: (why, data) => { reason = why; round = data?.round || null; if (round) drawRound(byId("own-progress"), round, words); if (!card) advance(); },
});

const contextOf = () => ({ card, state, change, focus, act, words, dialog });

// A task that needs no entry, or has a draft, is complete when it comes up: what was meant for the one before is no answer.
const canSubmit = () => card.flow.isComplete(card, state) && (history.length > 0 || performance.now() - shownAt >= READING_MS);

const paint = () => {
  if (!card) return;
  updateCard(card, state, tools);
  drawBar({ ...card.flow.bar(contextOf()), canUndo: history.length > 0, canSubmit: canSubmit() }, words);
};

// Take over a changed answer: remember the one before for undo, let the rest of it follow, save, paint. Changes in a row
// with the same `merge`, as the letters of a text, are undone together.
const change = (changed, { byHand = state.isByHand, active = state.active, merge = null } = {}) => {
  if (merge === null || merge !== merged) history.push(state);
  merged = merge;
  const before = state.active;
  state = card.flow.follow(card, changed, { byHand, active });
  drafts.save(card.task.assignment, state.answer);
  paint();
  card.flow.arrive(card, before, state);
};

const focus = (active, { isScrolled = true } = {}) => {
  state = { ...state, active };
  paint();
  if (isScrolled) card.responses.get(active)?.node.scrollIntoView({ block: "nearest" });
};

const otherProjects = () => setup.has_others ? [make("p", {}, make("a", { href: "/annotate" }, words.task_other_project))] : [];

let isLeaving = false;
const advance = () => {
  isLeaving = false;
  card = loader.take();
  if (!card) {
    place.replaceChildren();
    root.dataset.state = "empty";
    window.scrollTo(0, 0);
    if (round && round.standing === reason) drawEnd(byId("empty"), round, words, otherProjects());
    else drawEmpty(byId("empty"), reason, { words, retry: () => loader.fill(), others: otherProjects() });
    return;
  }
  const { assignment } = card.task, unsent = drafts.unsent(assignment);
  state = card.flow.start(card, { ...emptyAnswer(), ...(unsent || card.task.draft || {}) });
  if (unsent) drafts.save(assignment, state.answer);
  [history, merged] = [[], null];
  root.dataset.state = "task";
  place.replaceChildren(card.node);
  window.scrollTo(0, 0);
  shownAt = performance.now();
  later(paint, READING_MS + 1);
  drawGuideline(byId("guideline-text"), guidelines[card.task.guideline], words);
  drawAsked(byId("guideline"), card.task.questions);
  paint();
  loader.fill();
};

// The task on the screen is not this person's any more: say so before the next one takes the keys.
const leave = (outcome) => {
  if (isLeaving) return;
  isLeaving = true;
  showNotice(dialog, outcome === "answered" ? words.task_answered_elsewhere : words.task_taken, words, () => { advance(); loader.fill(); });
};

// Somebody comes back, from a pause or with a computer that slept: the time of the tasks may be over.
const lookAgain = async () => {
  if (card && !isQualification) await drafts.ask(card.task.assignment, state.answer);
  loader.fill({ isAnew: true });
};
const hasSlept = makeAbsence(Date.now, ASLEEP_MS), hasPaused = makeAbsence(Date.now, IDLE_MS);
const touch = () => { clock.touch(); if (hasPaused()) lookAgain(); };
const tick = () => { clock.tick(); if (document.visibilityState !== "hidden" && hasSlept()) lookAgain(); };

const submit = () => {
  if (!canSubmit()) { if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) byId("step").animate?.([{ opacity: 0.3 }, { opacity: 1 }], 250); return; }
  const { assignment, guideline } = card.task;
  if (isQualification) { learn(assignment); return; }
  drafts.forget(assignment);
  outbox.put({ assignment, guideline, answer: state.answer, seconds: clock.take() });
  advance();
  outbox.flush().then(() => { loader.fill(); refreshProgress(); });
};

// Send an answer of the qualification, and go on when what was right in it has been read.
const LEARN_AGAIN_MS = 3000;
let isSending = false;
const learn = async (assignment) => {
  if (isSending) return;
  isSending = true;
  const { status, data } = await send(`/annotate/qualification/${-assignment}?project=${setup.project}&seconds=${clock.take()}`, { body: state.answer });
  isSending = false;
  if (status !== 200) {
    drawBanner(byId("banner"), { waiting: 1, problem: status === 0 ? "offline" : status === 401 ? "logged out" : null, refused: status > 401 || status === 400 ? [{ reason: data?.error || status }] : [] }, { words, retry: () => learn(assignment), forgive: () => { byId("banner").hidden = true; } });
    if (status === 0 || status >= 500) later(() => { if (card?.task.assignment === assignment && !dialog.open) learn(assignment); }, LEARN_AGAIN_MS);
    return;
  }
  byId("banner").hidden = true;
  drafts.forget(assignment);
  ({ round } = data);
  drawRound(byId("own-progress"), round, words);
  showFeedback(dialog, data, words, () => { reason = round.standing === "open" ? "loading" : round.standing; advance(); loader.fill(); });
};

const undo = () => {
  const before = history.pop();
  if (!before) return;
  [state, merged] = [before, null];
  drafts.save(card.task.assignment, state.answer);
  paint();
};

const askDiscard = (action) => {
  if (!card.task.has_discards) return;
  const reasons = setup.discard_reasons.map((value) => rubric.discards.find((each) => each.value === value) || { value, label: value });
  card.flow.target(contextOf(), action, (response) => openReasons(dialog, fill(words.task_discard_title, { id: response }), reasons, { words, note: words.task_discard_effect, onChoice: (value) => card.flow.discard(contextOf(), response, value) }));
};

const mark = (action) => card.flow.target(contextOf(), action, (response) => {
  const view = card.task.responses.find(({ id }) => id === response), { choices, severities } = marksOf(card.task, response, rubric);
  const onSpan = (span) => change(marked(state.answer, response, [...(state.answer.spans[response] || []), span]));
  if (view) openMarking(dialog, view, { words, problems: choices, severities, onSpan });
});

const ACTIONS = {
  submit, undo, mark,
  activate: ({ response }) => card.flow.activate(contextOf(), response),
  discard: askDiscard,
  "cannot judge": () => openReasons(dialog, words.task_cannot_title, rubric.cannot_judge, { words, onChoice: (value) => change(undecided(state.answer, value)) }),
  unmark: ({ response, value }) => change(marked(state.answer, response, state.answer.spans[response].filter((_, number) => number !== value))),
  unfold: () => card.unfold.click(),
  guideline: () => setGuideline(!root.classList.contains("with-guideline")),
  keys: () => { dialog.onkeydown = null; drawKeys(dialog, (card?.flow || triple).allKeys(card), words, closing(dialog, words)); dialog.showModal(); },
};

const act = (action) => {
  touch();
  if (!card && !["keys", "guideline"].includes(action.name)) return;
  if (ACTIONS[action.name]) ACTIONS[action.name](action);
  else card.flow.actions[action.name]?.(contextOf(), action);
};

const setGuideline = (isOpen) => {
  root.classList.toggle("with-guideline", isOpen);
  byId("guideline").hidden = !isOpen;
  byId("guideline-button").setAttribute("aria-expanded", String(isOpen));
  store.set("steelyard-guideline", isOpen);
};

const refreshProgress = async () => {
  if (isQualification) return;
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  const { status, data } = await send(`/annotate/progress?project=${setup.project}&since=${midnight}`);
  if (status === 200) drawProgress(byId("own-progress"), data, words);
};

const drop = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
document.addEventListener("keydown", (event) => { if (isHeld(event)) drop(event); }, { capture: true });
// The second click of two in one place meets the choice that the first one brought up.
document.addEventListener("click", (event) => { if (event.detail > 1 && event.target.closest("#choices button, .choices button")) drop(event); }, { capture: true });
document.addEventListener("keydown", (event) => {
  touch();
  // What was in a dialog keeps the focus until the next frame.
  const isFree = dialog.contains(event.target) || !belongsTo(event.target, event.key);
  if (dialog.open || event.defaultPrevented || event.isComposing || !isFree) return;
  const action = (card?.flow || triple).actionOf(event, card, state);
  if (!action) return;
  event.preventDefault();
  if (!event.repeat || ["focus", "move", "step"].includes(action.name)) act(action);
});
// After a click the keys belong to the card again, not to the button: before it opens a dialog, which gives the focus back.
root.addEventListener("click", (event) => { const button = event.target.closest("button"); if (event.detail > 0 && button) button.blur(); }, { capture: true });
for (const name of ["pointermove", "wheel", "touchstart", "scroll"]) window.addEventListener(name, touch, { passive: true });
window.addEventListener("online", () => { outbox.retry(); drafts.flush(); loader.fill(); });
window.addEventListener("pagehide", () => { drafts.flush(); if (!isQualification) giveBack(loader.unseen().filter(({ assignment }) => !drafts.unsent(assignment))); });
// A page that comes back from the browser's memory has given its tasks back.
window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });
// Only where neither storage took it: a page that is left takes with it what was not sent.
window.addEventListener("beforeunload", (event) => { if (!outbox.isKept() || !drafts.isKept()) event.preventDefault(); });
// What another window of this person did.
window.addEventListener("storage", ({ key, newValue }) => {
  outbox.report();
  const assignment = card?.task.assignment;
  if (card && outbox.isDone(assignment, card.asked)) { leave("answered"); return; }
  const draft = card && newValue !== null && key === drafts.keyOf(assignment) ? drafts.unsent(assignment) : null;
  if (!draft) return;
  history.push(state);
  [state, merged] = [card.flow.start(card, { ...emptyAnswer(), ...draft }), null];
  paint();
});
document.addEventListener("visibilitychange", () => { tick(); drafts.flush(); if (document.visibilityState !== "hidden") outbox.retry(); });
for (const button of document.querySelectorAll("[data-action]")) button.addEventListener("click", () => act({ name: button.dataset.action }));
window.setInterval(tick, 1000);
window.setInterval(() => { if (card) drafts.beat(card.task.assignment, state.answer); }, 30000);
window.setInterval(() => { if (!card || !loader.size()) loader.fill(); }, 10000);
// A workbench that is started again is back within seconds, and no event tells.
window.setInterval(() => { if (!card && reason === "offline") loader.fill(); }, 2000);

setGuideline(store.get("steelyard-guideline") === true);
store.onKept(() => { outbox.report(); drafts.report(); });
store.restore().then(() => {
  outbox.open();
  outbox.flush().then(() => loader.fill());
  // Another window may be sending, over a slow connection.
  later(() => loader.fill(), FIRST_FILL_MS);
});
refreshProgress();
