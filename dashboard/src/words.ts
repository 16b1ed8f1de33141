// Times, durations and numbers as people read them.

/** `1.2 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 0) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1_000)} s`;
  const pairs: [number, string, number, string][] = [
    [3_600_000, "min", 60_000, "s"],
    [86_400_000, "h", 3_600_000, "min"],
    [Infinity, "d", 86_400_000, "h"],
  ];
  for (const [below, unit, unitMs, lesser] of pairs) {
    if (ms < below) {
      const whole = Math.floor(ms / unitMs);
      const lesserMs = { s: 1_000, min: 60_000, h: 3_600_000 }[lesser]!;
      const rest = Math.floor((ms - whole * unitMs) / lesserMs);
      return rest ? `${whole} ${unit} ${rest} ${lesser}` : `${whole} ${unit}`;
    }
  }
  return "–";
}

/** `12 s ago`. */
export function ago(at: string, now: number): string {
  const ms = now - Date.parse(at);
  return ms < 1_000 ? "now" : `${duration(ms < 60_000 ? Math.floor(ms / 1_000) * 1_000 : ms).replace(/\.0 s/, " s")} ago`;
}

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dayFormat = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "2-digit" });

/** The time of day with milliseconds, in the reader's zone. */
export function clock(at: string): string {
  const date = new Date(at);
  return `${clockFormat.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Day and time in the reader's zone. */
export function moment(at: string): string {
  return `${dayFormat.format(new Date(at))}, ${clock(at)}`;
}

/** `1 worker`, `2 workers`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

export function bytes(number: number): string {
  if (number < 1_024) return `${number} B`;
  if (number < 1_048_576) return `${(number / 1_024).toFixed(1)} KiB`;
  return `${(number / 1_048_576).toFixed(1)} MiB`;
}
