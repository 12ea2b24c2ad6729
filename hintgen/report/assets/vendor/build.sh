#!/bin/sh
# Build vendor.min.js and LICENSES.txt from the versions in package.json. (cytoscape-dagre bundles
# @dagrejs/dagre, which is listed for its licence.)
set -eu
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund
node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --target=es2020 \
  --legal-comments=none --define:process.env.NODE_ENV='"production"' --outfile=vendor.min.js
: > LICENSES.txt
for name in $(node -e '
  const seen = new Set();
  const walk = (name) => {
    if (seen.has(name)) return;
    seen.add(name);
    const data = require(`./node_modules/${name}/package.json`);
    Object.keys(data.dependencies || {}).forEach(walk);
  };
  Object.keys(require("./package.json").dependencies).forEach(walk);
  console.log([...seen].sort().join("\n"));'); do
  {
    echo "==== $name $(node -p "const p=require('./node_modules/$name/package.json'); p.version + ' (' + p.license + ')'")"
    cat "node_modules/$name"/LICENSE* "node_modules/$name"/license* "node_modules/$name"/NOTICE* 2>/dev/null || :
    echo
  } >> LICENSES.txt
done
rm -rf node_modules
ls -l vendor.min.js LICENSES.txt
