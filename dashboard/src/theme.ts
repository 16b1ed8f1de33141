// Light, dark, or as the system says; kept in the browser. What a colour is then, is the sheet's.
import { Signal } from "./signal";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "durable-mcp-theme";
export const theme = new Signal<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "auto");
/** Counts changes of the colours, whoever changed them: what is painted rather than styled has to be painted again. */
export const colours = new Signal(0);

const show = () => {
  document.documentElement.dataset.theme = theme.value;
  colours.value += 1;
};
theme.watch(() => {
  localStorage.setItem(KEY, theme.value);
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
show();

/** The colour of a name in the sheet, such as `--good`, as it is now. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
