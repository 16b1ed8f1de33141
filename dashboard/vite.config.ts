// The build is committed and embedded in the program: no hashes in names and nothing minified, so that a difference can be read.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2023",
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
