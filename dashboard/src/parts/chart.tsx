// Numbers over time as lines, drawn by uPlot on a canvas, and the same as a table for who can not see it. Knows no route.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useSignal } from "../signal";
import { colour, colours } from "../theme";

export interface Line {
  label: string;
  /** A name in the sheet, such as `--good`. */
  colour: string;
  /** Lines differ by more than their colour. */
  dash?: number[];
  /** One number per step; absent where there is none. */
  values: (number | null)[];
}

interface Props {
  title: string;
  /** The beginning of each step. */
  times: string[];
  lines: Line[];
  /** A number as people read it. */
  say: (value: number) => string;
  /** No axis ends below this. */
  atLeast: number;
}

const HEIGHT = 180;
const DOTS_MAX = 60;
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

export function Chart({ title, times, lines, say, atLeast }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shades = useSignal(colours);
  const [at, setAt] = useState<number>();
  const data: uPlot.AlignedData = [times.map((at) => Date.parse(at) / 1_000), ...lines.map((line) => line.values)];
  const latest = useRef({ data, say });
  latest.current = { data, say };
  const shape = `${times.length} ${lines.map((line) => line.label).join()} ${shades}`;

  useEffect(() => {
    const box = place.current!;
    const drawn = new uPlot(options(box.clientWidth, lines, atLeast, (value) => latest.current.say(value), setAt), latest.current.data, box);
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth, height: HEIGHT }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = undefined;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [times, lines]);

  const told = at !== undefined && at < times.length ? at : undefined;
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map((line) => (
          <span key={line.label} class="chart-line">
            <svg width="22" height="8" aria-hidden="true">
              <line x1="0" y1="4" x2="22" y2="4" stroke={`var(${line.colour})`} stroke-width="2.5" stroke-dasharray={line.dash?.join(" ")} />
            </svg>{" "}
            {line.label}
            {told !== undefined && line.values[told] != null && <b> {say(line.values[told]!)}</b>}
          </span>
        ))}
        {told !== undefined && <span class="quiet">{time.format(new Date(times[told]!))}</span>}
      </figcaption>
      <div class="chart-plot" ref={place} aria-hidden="true" />
      <details>
        <summary>As a table</summary>
        <div class="chart-table" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
          <table class="rows plain">
            <caption class="hidden">{title}</caption>
            <thead>
              <tr>
                <th scope="col">From</th>
                {lines.map((line) => (
                  <th key={line.label} scope="col">
                    {line.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((at, step) => (
                  <tr key={at}>
                    <th scope="row">{time.format(new Date(at))}</th>
                    {lines.map((line) => (
                      <td key={line.label}>{line.values[step] == null ? "–" : say(line.values[step]!)}</td>
                    ))}
                  </tr>
                ))
                .reverse()}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function options(width: number, lines: Line[], atLeast: number, say: (value: number) => string, told: (at: number | undefined) => void): uPlot.Options {
  const [text, rule] = [colour("--quiet"), colour("--line")];
  const axis: uPlot.Axis = { stroke: text, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [10, 6, 0, 0],
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, atLeast) * 1.08] } },
    axes: [
      { ...axis, size: 28, values: (_plot, splits) => splits.map((split) => time.format(new Date(split * 1_000))) },
      { ...axis, size: 62, values: (_plot, splits) => splits.map(say) },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 2,
        ...(line.dash && { dash: line.dash }),
        points: { show: true, size: 5, fill: colour(line.colour), filter: (plot: uPlot, at: number) => dots(plot.data[at] as (number | null)[]) },
      })),
    ],
    hooks: { setCursor: [(plot: uPlot) => told(plot.cursor.idx ?? undefined)] },
  };
}

/** Where a dot stands: at each step while there are few, else where no line leads. */
function dots(values: (number | null)[]): number[] {
  const alone = (at: number) => values[at - 1] == null && values[at + 1] == null;
  return values.flatMap((value, at) => (value != null && (values.length <= DOTS_MAX || alone(at)) ? [at] : []));
}
