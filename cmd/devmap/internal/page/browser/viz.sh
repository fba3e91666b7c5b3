#!/bin/sh
# Write the page of torch's memory_viz for a step of TestFirstPaint, with its scripts
# inside, so that no network counts: viz.sh FOLDER MemoryViz.js
# MICRO-BATCHES
set -e
here=$(cd "$(dirname "$0")" && pwd)
viz=$(realpath "$2")
cd "$1"
"${PYTHON:-python3}" "$here/viz.py" "$here/../../../../../fixtures/models/llama-3.2-1b" 2048 "$3" torch.html
npm install --silent --no-save --prefix . esbuild@0.28.2 $(grep -oE "\bd3[a-z-]*@[0-9]+" "$viz" | sort -u) >/dev/null
cp "$(dirname "$viz")"/*.js .
sed -E 's,https://cdn[a-z./]*/(d3[a-z-]*)@[0-9]*(/\+esm)?,\1,' "$viz" > viz.js
echo 'export {add_local_files} from "./viz.js"' > entry.js
node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --global-name=viz --outfile=bundle.js --log-level=error
awk 'FNR == NR { code = code $0 "\n"; next } /^import .add_local_files/ { printf "%sconst {add_local_files} = viz;\n", code; next } { print }' bundle.js torch.html > memory_viz.html
