// The time spent on a task: seconds with the page in front, less those in which nothing moved for two minutes.

export const IDLE_MS = 120000;
const LONGEST_TICK_MS = 5000;

// `now` gives milliseconds, `isInFront` whether the page is seen. Call `tick` about every second and `touch` at each sign of life.
export const makeClock = (now, isInFront) => {
  let last = now(), touched = last, counted = 0;
  const tick = () => {
    const time = now(), step = time - last;
    last = time;
    // A clock that was set back begins anew: time that is less than none would be refused, and the answer with it.
    if (step < 0) { touched += step; return; }
    // A computer that slept ticks once, late: its sleep is no work.
    if (isInFront() && step <= LONGEST_TICK_MS && time - touched <= IDLE_MS) counted += step;
  };
  return {
    tick,
    touch: () => { tick(); touched = now(); },
    // Return the seconds since they were last taken; `take` begins anew, `give` puts back what could not be sent.
    counted: () => counted / 1000,
    take: () => { tick(); const seconds = counted / 1000; counted = 0; return seconds; },
    give: (seconds) => { counted += seconds * 1000; },
  };
};

// Tell at each call whether more time has passed since the one before than `longest`, in milliseconds. By the time of day:
// other clocks may stand still while a computer sleeps.
export const makeAbsence = (now, longest) => {
  let last = now();
  return () => { const gap = now() - last; last += gap; return gap > longest; };
};
