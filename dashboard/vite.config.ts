// The build is committed and embedded in the program: no hashes in names and nothing of ours minified, so that a difference can
// be read.
import { defineConfig, transformWithEsbuild } from "vite";

/** What somebody else wrote is nothing to compare line by line: it takes half the room this way. */
const minifiedChart = {
  name: "minified-chart",
  transform: (code: string, id: string) => (/uplot.*\.js$/i.test(id) ? transformWithEsbuild(code, id, { minify: true, target: "es2023" }) : null),
};

export default defineConfig({
  base: "./",
  plugins: [minifiedChart],
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "esnext",
    minify: false,
    cssMinify: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "dashboard.js",
        assetFileNames: "dashboard[extname]",
        inlineDynamicImports: true,
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:7400" } },
});
