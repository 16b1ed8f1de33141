#!/bin/sh
# Reads {"text": "…"} from stdin and prints how many lines, words and bytes the text has.
# POSIX sh, sed, tr and wc only: the JSON string is unescaped by hand, which is enough for a demonstration.
set -eu

# One line, in case the caller's JSON was spread over several; inside a JSON string a line break is always `\n`.
json=$(tr '\n' ' ')
text=$(printf '%s' "$json" | sed -n 's/^.*"text" *: *"\(.*\)"[^"]*$/\1/p')

# Escaped backslashes wait as one byte that JSON forbids in strings, so that `\\n` does not become a line break.
hold=$(printf '\001')
unescaped=$(printf '%s' "$text" | sed -e "s/\\\\\\\\/$hold/g" -e 's/\\"/"/g' -e 's/\\\//\//g' -e 's/\\[tr]/ /g' \
  -e 's/\\n/\
/g' -e "s/$hold/\\\\/g")

lines=0
if [ -n "$unescaped" ]; then
  lines=$(printf '%s\n' "$unescaped" | wc -l | tr -d ' ')
fi
words=$(printf '%s' "$unescaped" | wc -w | tr -d ' ')
bytes=$(printf '%s' "$unescaped" | wc -c | tr -d ' ')
printf '%s lines, %s words, %s bytes\n' "$lines" "$words" "$bytes"
