// Tasks loaded ahead: the next card is built and waits while the present one is answered.

import { problemOf } from "./outbox.js";

const MOST_AHEAD = 2, MOST_OPEN = 3;

// `prepare(task, guidelines)` builds a card. `onTasks` hears when the first card is there, or why there is none, and
// what the workbench said last.
export const makeLoader = ({ path, project, outbox, send, prepare, onTasks }) => {
  let ready = [], present = null, reason = null, isLoading = false, isOffline = false, latest = null;
  // Until when each task is this person's, as the workbench said last.
  const until = new Map();

  const isNew = (task) => task.assignment !== present && !outbox.isDone(task.assignment) && !ready.some((card) => card.task.assignment === task.assignment);
  const fill = async () => {
    if (isLoading || ready.length >= MOST_AHEAD) return;
    isLoading = true;
    // Answers that wait to be sent still count as open tasks at the workbench.
    const number = Math.min(MOST_OPEN, MOST_AHEAD + outbox.size() + (present === null ? 0 : 1));
    const { status, data } = await send(`${path}?project=${project}&number=${number}`);
    isLoading = false;
    isOffline = status !== 200;
    reason = isOffline ? problemOf(status) : null;
    if (!isOffline) {
      for (const task of data.tasks) until.set(task.assignment, task.until);
      for (const task of data.tasks.filter(isNew)) ready.push(prepare(task, data.guidelines));
      reason = data.reason || "all taken";
      latest = data;
    }
    onTasks(reason, latest);
  };
  return {
    fill,
    // The next card, at once; null where none is loaded.
    take: () => {
      ready = ready.filter((card) => !outbox.isDone(card.task.assignment));
      const card = ready.shift() || null;
      present = card ? card.task.assignment : null;
      return card;
    },
    size: () => ready.length,
    // What was loaded and never shown, to be given back when the page is closed.
    unseen: () => ready.map(({ task }) => ({ assignment: task.assignment, until: until.get(task.assignment) })),
    isOffline: () => isOffline,
  };
};
