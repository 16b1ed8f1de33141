// Calls as rows; on a phone each row becomes a card.
import type { Execution } from "../api";
import { href } from "../route";
import { ago, duration, moment } from "../words";
import { State } from "./state";

interface Props {
  rows: Execution[];
  now: number;
  selected?: ReadonlySet<string>;
  onSelect?: (ids: ReadonlySet<string>) => void;
}

export function ExecutionTable({ rows, now, selected, onSelect }: Props) {
  const toggle = (id: string) => {
    const changed = new Set(selected);
    if (!changed.delete(id)) changed.add(id);
    onSelect?.(changed);
  };
  return (
    <table class="rows">
      <caption class="hidden">Executions, newest first</caption>
      <thead>
        <tr>
          {onSelect && (
            <th>
              <input
                type="checkbox"
                aria-label="Select all shown"
                checked={rows.length > 0 && rows.every((row) => selected?.has(row.id))}
                onChange={(event) => onSelect(new Set(event.currentTarget.checked ? rows.map((row) => row.id) : []))}
              />
            </th>
          )}
          <th>State</th>
          <th>Tool</th>
          <th>Submitted</th>
          <th>Took</th>
          <th>Attempt</th>
          <th>Principal</th>
          <th>Last error</th>
          <th>Id</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            {onSelect && (
              <td>
                <input type="checkbox" aria-label={`Select ${row.id}`} checked={selected?.has(row.id) ?? false} onChange={() => toggle(row.id)} />
              </td>
            )}
            <td data-label="State">
              <State state={row.state} isError={row.is_error ?? null} />
            </td>
            <td data-label="Tool">
              <span>
                <a class="tool" href={href("executions", row.id)}>
                  {row.tool}
                </a>{" "}
                <span class="quiet">{row.upstream}</span>
              </span>
            </td>
            <td data-label="Submitted" title={moment(row.created_at)}>
              {ago(row.created_at, now)}
            </td>
            <td data-label="Took">{took(row, now)}</td>
            <td data-label="Attempt" class={row.attempt > 1 ? "again" : ""}>
              {row.attempt} of {row.attempts_allowed}
            </td>
            <td data-label="Principal">{row.principal}</td>
            <td data-label="Last error">{row.error ? <code title={row.error.message}>{row.error.code}</code> : ""}</td>
            <td data-label="Id">
              <code title={row.id}>…{row.id.slice(-8)}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function took(row: Execution, now: number): string {
  const endMs = row.ended_at ? Date.parse(row.ended_at) : now;
  const text = duration(Math.max(endMs - Date.parse(row.created_at), 0));
  return row.ended_at ? text : `${text} so far`;
}
