cd /work/wt/perf && rm -rf dist && npx tsc -p tsconfig.esm.json && echo built
