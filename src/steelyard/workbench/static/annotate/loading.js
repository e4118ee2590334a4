// Tasks loaded ahead: the next card is built and waits while the present one is answered.

import { problemOf } from "./outbox.js";

const MOST_AHEAD = 2, MOST_OPEN = 3;

// `prepare(task, guidelines)` builds a card. `onTasks` hears when the first card is there, or why there is none, and
// what the workbench said last. `tabs` are the other windows of this person, which may have some of the tasks.
export const makeLoader = ({ path, project, person, outbox, send, prepare, onTasks, tabs, now = Date.now }) => {
  let ready = [], present = null, reason = null, isLoading = false, latest = null;
  // Until when each task is this person's, as the workbench said last.
  const until = new Map();

  const isNew = (task) => task.assignment !== present && !ready.some((card) => card.task.assignment === task.assignment);
  // Build cards of the tasks that no other window has. Returns whether another one has any.
  const takeOver = async (data, asked) => {
    let areElsewhere = false;
    for (const task of data.tasks.filter((each) => isNew(each) && !outbox.isDone(each.assignment, asked))) {
      if (ready.length >= MOST_AHEAD + (present === null ? 1 : 0)) break;
      if (!await tabs.claim(task.assignment)) areElsewhere = true;
      // The other window may have answered it, and left it, in the meantime.
      else if (outbox.isDone(task.assignment, asked)) tabs.free(task.assignment);
      else ready.push({ ...prepare(task, data.guidelines), asked });
    }
    return areElsewhere;
  };
  const load = async () => {
    // Answers that wait to be sent still count as open tasks at the workbench.
    const number = Math.min(MOST_OPEN, MOST_AHEAD + outbox.size() + (present === null ? 0 : 1)), asked = now();
    const { status, data } = await send(`${path}?project=${project}&person=${person}&number=${number}`);
    reason = status === 200 ? null : problemOf(status);
    if (reason === null) {
      for (const task of data.tasks) until.set(task.assignment, task.until);
      // What was loaded ahead and is not this person's any more is not shown.
      const mine = new Set(data.tasks.map(({ assignment }) => assignment));
      drop(ready.filter(({ task }) => !mine.has(task.assignment)));
      reason = await takeOver(data, asked) ? "other window" : data.reason || "all taken";
      latest = data;
    }
  };
  const fill = async ({ isAnew = false } = {}) => {
    if (isLoading || (ready.length >= MOST_AHEAD && !isAnew)) return;
    isLoading = true;
    try { await load(); } finally { isLoading = false; }
    onTasks(reason, latest);
    if (reason === "other window" && present === null) tabs.tell("wanted");
  };
  const drop = (cards) => {
    ready = ready.filter((card) => !cards.includes(card));
    for (const { task } of cards) tabs.free(task.assignment);
  };
  // A window without a task gets one that waits here.
  tabs.hear((word) => {
    if (word === "wanted" && present !== null && ready.length) { drop(ready.slice(-1)); tabs.tell("left"); }
    if (word === "left" && present === null) fill();
  });
  return {
    fill,
    // The next card, at once; null where none is loaded.
    take: () => {
      if (present !== null) tabs.free(present);
      drop(ready.filter(({ task, asked }) => outbox.isDone(task.assignment, asked)));
      const card = ready.shift() || null;
      present = card ? card.task.assignment : null;
      return card;
    },
    size: () => ready.length,
    // What was loaded and never shown, to be given back when the page is closed.
    unseen: () => ready.map(({ task }) => ({ assignment: task.assignment, until: until.get(task.assignment) })),
  };
};
