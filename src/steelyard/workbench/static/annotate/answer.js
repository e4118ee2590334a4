// The state of an answer to a triple: what scores and comparisons imply, what contradicts what, and what comes next.
// The rules are those of annotation/answers.py, and a test runs both over the same answers. All functions are pure.

export const emptyAnswer = () => ({ scores: {}, comparisons: [], ranking: [], discarded: {}, spans: {}, entries: {}, cannot_judge: null, remark: null });

const TURNED = { better: "worse", same: "same", worse: "better" };
const pairsOf = (all) => all.flatMap((first, place) => all.slice(place + 1).map((second) => [first, second]));
const triosOf = (all) => all.flatMap((first, place) => pairsOf(all.slice(place + 1)).map((pair) => [first, ...pair]));
const ordersOf = (all) => all.length < 2 ? [all] : all.flatMap((first) => ordersOf(all.filter((other) => other !== first)).map((rest) => [first, ...rest]));
const isPair = (entry, first, second) => (entry.first === first && entry.second === second) || (entry.first === second && entry.second === first);

export const judgedOf = (answer, shown) => shown.filter((response) => !(response in answer.discarded));

const choiceOf = (answer, first, second) => {
  const entry = answer.comparisons.findLast((each) => isPair(each, first, second));
  if (!entry) return null;
  return entry.first === first ? entry.choice : TURNED[entry.choice];
};
const relationOf = (answer, first, second) => {
  const difference = answer.scores[first] - answer.scores[second];
  if (difference) return difference > 0 ? "better" : "worse";
  return choiceOf(answer, first, second);
};
const isOrdered = (answer, [first, second, third]) => {
  const steps = [relationOf(answer, first, second), relationOf(answer, second, third)];
  if (steps.includes("worse") || steps.includes(null)) return false;
  return relationOf(answer, first, third) === (steps.every((step) => step === "same") ? "same" : "better");
};
const placesOf = (ranking) => new Map(ranking.flatMap((tier, place) => tier.map((response) => [response, place])));

// How the ranking itself orders two responses; null where one is not in it.
export const rankedRelation = (answer, first, second) => {
  const places = placesOf(answer.ranking);
  if (!places.has(first) || !places.has(second)) return null;
  const difference = places.get(second) - places.get(first);
  return difference === 0 ? "same" : difference > 0 ? "better" : "worse";
};

// All that keeps an answer from being submitted, in the order of entering: {problem, responses}.
export const contradictions = (answer, shown) => {
  if (answer.cannot_judge !== null) return [];
  const judged = judgedOf(answer, shown);
  const missing = judged.filter((response) => !(response in answer.scores));
  if (missing.length) return missing.map((response) => ({ problem: "missing score", responses: [response] }));
  const uncompared = pairsOf(judged).filter(([first, second]) => answer.scores[first] === answer.scores[second] && choiceOf(answer, first, second) === null);
  if (uncompared.length) return uncompared.map((responses) => ({ problem: "missing comparison", responses }));
  const circles = triosOf(judged).filter((trio) => !ordersOf(trio).some((order) => isOrdered(answer, order)));
  if (circles.length) return circles.map((responses) => ({ problem: "circle", responses }));
  return pairsOf(judged)
    .filter(([first, second]) => ![null, relationOf(answer, first, second)].includes(rankedRelation(answer, first, second)))
    .map((responses) => ({ problem: answer.scores[responses[0]] === answer.scores[responses[1]] ? "comparison against ranking" : "score against ranking", responses }));
};

// The ranking that follows from scores and comparisons; null while they are incomplete or contradictory.
export const impliedRanking = (answer, shown) => {
  const problems = contradictions(answer, shown).map((each) => each.problem);
  if (answer.cannot_judge !== null || problems.some((problem) => ["missing score", "missing comparison", "circle"].includes(problem))) return null;
  const judged = judgedOf(answer, shown);
  const beatenBy = new Map(judged.map((response) => [response, judged.filter((other) => other !== response && relationOf(answer, other, response) === "better").length]));
  return [...new Set(beatenBy.values())].sort((first, second) => first - second).map((place) => judged.filter((response) => beatenBy.get(response) === place));
};

// What the person has to do next: score one response, compare two, settle a contradiction, or submit.
export const nextStep = (answer, shown) => {
  const [first] = contradictions(answer, shown);
  if (!first) return { kind: "submit", responses: [] };
  const kind = { "missing score": "score", "missing comparison": "compare" }[first.problem] || "settle";
  return { kind, problem: first.problem, responses: first.responses };
};

// Comparisons between responses whose scores differ by now say nothing any more.
const withoutIdle = (answer) => ({ ...answer, comparisons: answer.comparisons.filter(({ first, second }) => first in answer.scores && answer.scores[first] === answer.scores[second]) });

export const scored = (answer, response, score) => {
  const { [response]: _, ...discarded } = answer.discarded;
  return withoutIdle({ ...answer, cannot_judge: null, discarded, scores: { ...answer.scores, [response]: score } });
};
export const compared = (answer, first, second, choice) => ({ ...answer, comparisons: [...answer.comparisons.filter((each) => !isPair(each, first, second)), { first, second, choice }] });
export const uncompared = (answer, responses) => ({ ...answer, comparisons: answer.comparisons.filter(({ first, second }) => !responses.includes(first) || !responses.includes(second)) });
export const discarded = (answer, response, reason) => {
  const { [response]: _, ...scores } = answer.scores;
  const ranking = answer.ranking.map((tier) => tier.filter((each) => each !== response)).filter((tier) => tier.length);
  return withoutIdle({ ...answer, cannot_judge: null, scores, ranking, discarded: { ...answer.discarded, [response]: reason } });
};
export const undecided = (answer, reason) => ({ ...emptyAnswer(), spans: answer.spans, cannot_judge: reason });
export const marked = (answer, response, spans) => {
  const { [response]: _, ...others } = answer.spans;
  return { ...answer, spans: spans.length ? { ...others, [response]: spans } : others };
};

// Move a response one step up (-1) or down (+1): out of a tie into a tier of its own, or into the tie with its neighbours.
export const moved = (ranking, response, direction) => {
  const place = ranking.findIndex((tier) => tier.includes(response));
  if (place < 0) return ranking;
  const rest = ranking[place].filter((each) => each !== response);
  const tiers = ranking.map((tier) => [...tier]);
  if (rest.length) {
    tiers.splice(place, 1, ...(direction < 0 ? [[response], rest] : [rest, [response]]));
    return tiers;
  }
  const target = place + direction;
  if (target < 0 || target >= tiers.length) return ranking;
  tiers[target].push(response);
  tiers.splice(place, 1);
  return tiers.map((tier) => [...tier].sort());
};

export const isSameRanking = (first, second) => {
  const plain = (ranking) => JSON.stringify((ranking || []).map((tier) => [...tier].sort()));
  return plain(first) === plain(second);
};
