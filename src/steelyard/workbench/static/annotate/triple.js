// The flow of a triple: scores, comparisons of equal scores, and a ranking that follows from both or is made by hand.

import { compared, discarded, impliedRanking, isSameRanking, judgedOf, moved, nextStep, rankedRelation, scored, uncompared } from "./answer.js";
import { fill, make } from "./card.js";
import { ALL_KEYS, actionOf, hintsOf } from "./keys.js";

const SIGNS = { better: ">", same: "=", worse: "<" };
const STACKED = 832;

// A contradiction in words.
export const problemInWords = ({ problem, responses }, answer, words) => {
  const [first, second] = responses;
  if (problem === "circle") return fill(words.task_problem_circle, { responses: responses.join(" · ") });
  const ranking = SIGNS[rankedRelation(answer, first, second)];
  if (problem === "comparison against ranking") {
    const entry = answer.comparisons.find((each) => responses.includes(each.first) && responses.includes(each.second));
    return fill(words.task_problem_comparison, { compared: `${entry.first} ${SIGNS[entry.choice]} ${entry.second}`, ranked: `${first} ${ranking} ${second}` });
  }
  return fill(words.task_problem_score, { first, second, x: answer.scores[first], y: answer.scores[second], ranked: `${first} ${ranking} ${second}` });
};

const stepInWords = (step, { answer, active }, words) => {
  if (step.kind === "score") return fill(words.task_step_score, { id: active in answer.scores || active === null ? step.responses[0] : active });
  if (step.kind === "compare") return fill(words.task_step_compare, { first: step.responses[0], second: step.responses[1] });
  if (step.kind === "settle") return problemInWords(step, answer, words);
  return answer.cannot_judge === null ? words.task_step_submit : words.task_step_cannot;
};

const firstUnscored = (answer, shown) => judgedOf(answer, shown).find((response) => !(response in answer.scores));

// Take over a changed answer, and let the ranking follow.
const follow = (card, changed, { byHand, active }) => {
  const implied = impliedRanking(changed, card.shown);
  // A ranking by hand holds as long as it names the responses that are judged, and says something of its own.
  const isWhole = changed.ranking.flat().length === judgedOf(changed, card.shown).length;
  const isByHand = byHand && isWhole && !isSameRanking(implied, changed.ranking);
  return { answer: isByHand ? changed : { ...changed, ranking: implied || [] }, active, isByHand };
};

const move = ({ card, state, change }, { value, response = activeOf(card, state) }) => {
  if (!state.answer.ranking.length || !response) return;
  change({ ...state.answer, ranking: moved(state.answer.ranking, response, value) }, { byHand: true, active: response });
};

// The response that keys act on: the outlined one. While two responses are compared, none.
const activeOf = (card, { answer, active }) => nextStep(answer, card.shown).kind === "compare" ? null : active;

const ACTIONS = {
  move,
  score: ({ card, state, change }, { value, response = activeOf(card, state) }) => {
    if (response === null) return;
    const changed = scored(state.answer, response, value);
    const order = [...card.shown.slice(card.shown.indexOf(response)), ...card.shown];
    const next = order.find((each) => !(each in changed.scores) && !(each in changed.discarded));
    change(changed, { active: next || response });
  },
  compare: ({ card, state, change }, { value }) => {
    const step = nextStep(state.answer, card.shown);
    if (step.kind === "compare") change(compared(state.answer, ...step.responses, value));
  },
  // Settle a contradiction the short way: compare a circle again, or take the ranking that follows.
  reset: ({ card, state, change }) => {
    const step = nextStep(state.answer, card.shown);
    if (step.problem === "circle") change(uncompared(state.answer, step.responses), { byHand: false });
    else if (state.isByHand) change({ ...state.answer, ranking: [] }, { byHand: false });
  },
  focus: ({ card, state, focus }, { value }) => {
    const at = card.shown.indexOf(state.active), { length } = card.shown;
    focus(card.shown[at < 0 ? (value > 0 ? 0 : length - 1) : (at + value + length) % length]);
  },
};

const bar = ({ card, state, words, act, change }) => {
  const step = nextStep(state.answer, card.shown);
  const choice = (value, key, label) => ({ label, key, isPressed: null, run: () => act({ name: "compare", value }) });
  const [first, second] = step.responses;
  return {
    kind: step.kind, text: stepInWords(step, state, words), hints: hintsOf(step).map(([keys, word]) => [keys, words[word]]), canReset: step.kind === "settle",
    choices: step.kind !== "compare" ? [] : [choice("better", "g", fill(words.task_better, { id: first })), choice("same", "s", words.task_key_same), choice("worse", "b", fill(words.task_better, { id: second }))],
    ranking: { tiers: state.answer.ranking, active: activeOf(card, state), scores: state.answer.scores, onRank: (ranking) => change({ ...state.answer, ranking }, { byHand: true }), onMove: (response, value) => act({ name: "move", value, response }) },
  };
};

// The row of scores under a response.
const controls = (task, response, { words, rubric, act }) => {
  const scores = rubric.scores.map(({ value, label }) => make("button", { type: "button", class: "score", "aria-pressed": "false", title: label, "aria-label": `${fill(words.task_score_of, { id: response.id })}: ${value}, ${label}`, onclick: () => act({ name: "score", value, response: response.id }) }, String(value)));
  const meaning = make("p", { class: "meaning" });
  const update = ({ answer }) => {
    const score = answer.scores[response.id];
    scores.forEach((button, value) => button.setAttribute("aria-pressed", String(value === score)));
    meaning.textContent = score === undefined ? "\u00a0" : `${rubric.scores[score].label} · ${rubric.scores[score].text}`;
  };
  return { nodes: [make("div", { class: "verdict" }, make("div", { class: "scores", role: "group", "aria-label": fill(words.task_score_of, { id: response.id }) }, ...scores), meaning)], update };
};

export const triple = {
  follow, bar, controls, actions: ACTIONS, allKeys: () => ALL_KEYS,
  panel: () => null,
  // A draft whose scores are complete has no active response: digits typed for a new card would go to the first.
  start: (card, answer) => ({ answer, active: firstUnscored(answer, card.shown) || null, isByHand: answer.ranking.length > 0 && !isSameRanking(impliedRanking(answer, card.shown), answer.ranking) }),
  isComplete: (card, { answer }) => nextStep(answer, card.shown).kind === "submit",
  // The responses that the step is about, and the one that keys go to.
  lit: (card, state) => {
    const step = nextStep(state.answer, card.shown);
    return { asked: ["compare", "settle"].includes(step.kind) ? step.responses : [], active: activeOf(card, state) };
  },
  actionOf: (event, card, { answer }) => actionOf(event, card ? nextStep(answer, card.shown) : { kind: "none" }),
  discard: ({ card, state, change }, response, reason) => {
    const changed = discarded(state.answer, response, reason);
    change(changed, { active: firstUnscored(changed, card.shown) || judgedOf(changed, card.shown)[0] || response });
  },
  target: ({ card, state }, { response = activeOf(card, state) }, then) => { if (response !== null) then(response); },
  activate: ({ state, focus }, response) => { if (response !== state.active) focus(response, { isScrolled: false }); },
  // Responses under each other: the next one comes into sight.
  arrive: (card, before, { answer, active }) => {
    if (active !== before && nextStep(answer, card.shown).kind === "score" && window.innerWidth <= STACKED) card.responses.get(active).node.scrollIntoView({ block: "start" });
  },
};
