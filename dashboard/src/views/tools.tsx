// The tools on offer, and for each the settings in force with who said so.
import { get, type Tool, type Upstream } from "../api";
import { useLoad } from "../load";
import { Empty, Shown } from "../parts/notice";
import { Payload } from "../parts/payload";
import { href } from "../route";
import { count, duration } from "../words";

export function Tools() {
  const loaded = useLoad("tools", (signal) => get<{ tools: Tool[]; upstreams: Upstream[] }>("/api/v1/tools", signal), 10_000);
  return (
    <>
      <h1>Tools</h1>
      <Shown of={loaded}>
        {({ tools, upstreams }) => (
          <>
            <ul class="upstreams">
              {upstreams.map((upstream) => (
                <li key={upstream.name}>
                  <strong>{upstream.name}</strong> <span class={`upstream-${upstream.state}`}>{upstream.state}</span>
                  <span class="quiet">, {count(upstream.tools, "tool")}</span>
                  {upstream.problem && <p class="warning">{upstream.problem}</p>}
                </li>
              ))}
            </ul>
            {tools.length ? (
              <table class="rows">
                <caption class="hidden">Tools</caption>
                <thead>
                  <tr>
                    <th>Tool</th>
                    <th>What it does</th>
                    <th>Delivery</th>
                    <th>Attempts</th>
                    <th>Waits for</th>
                  </tr>
                </thead>
                <tbody>
                  {tools.map((tool) => (
                    <tr key={tool.name}>
                      <td data-label="Tool">
                        <a href={href("tools", tool.name)}>{tool.name}</a>
                      </td>
                      <td data-label="What it does" class="prose">
                        {tool.description ?? tool.title ?? ""}
                      </td>
                      <td data-label="Delivery">{setting(tool, "delivery")}</td>
                      <td data-label="Attempts">{setting(tool, "retry.max_attempts")}</td>
                      <td data-label="Waits for">{setting(tool, "wait")}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty>No server has offered a tool yet.</Empty>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

export function OneTool({ name }: { name: string }) {
  const loaded = useLoad(name, (signal) => get<Tool>(`/api/v1/tools/${encodeURIComponent(name)}`, signal));
  return (
    <>
      <p class="back">
        <a href={href("tools")}>← Tools</a>
      </p>
      <Shown of={loaded}>
        {(tool) => (
          <>
            <h1>{tool.name}</h1>
            <p class="prose">{tool.description}</p>
            <p>
              <a href={href("executions", undefined, new URLSearchParams({ tool: tool.tool, upstream: tool.upstream }))}>Its executions</a>
            </p>
            <section aria-labelledby="policy">
              <h2 id="policy">Settings in force</h2>
              <table class="rows">
                <thead>
                  <tr>
                    <th>Setting</th>
                    <th>Value</th>
                    <th>Said by</th>
                  </tr>
                </thead>
                <tbody>
                  {Object.keys(tool.policy).map((key) => (
                    <tr key={key}>
                      <td data-label="Setting">
                        <code>{key}</code>
                      </td>
                      <td data-label="Value">{setting(tool, key)}</td>
                      <td data-label="Said by">{tool.policy[key]!.source}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
            {tool.definition && <Payload name="Its definition" first={{ text: JSON.stringify(tool.definition), pieces: 1 }} />}
          </>
        )}
      </Shown>
    </>
  );
}

function setting(tool: Tool, key: string): string {
  const setting = tool.policy[key];
  if (!setting) return "";
  if (typeof setting.value_ms === "number") return duration(setting.value_ms);
  const value: unknown = setting.value;
  if (value === null || value === undefined) return "off";
  if (Array.isArray(value)) return value.length ? value.join(", ") : "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
