#!/bin/sh
# What people do before a federation begins, done by one hand: identities, made-up patients, and the file all agree on.
# Only for the demo: a real key is made where it stays, and never leaves.
set -eu
cd /agreed
if [ -e federation.toml ]; then exit 0; fi
python -c 'from pathlib import Path; from confide.demo.network import write_hospitals; write_hospitals(Path("."), 2000)'
parties=""
for name in mercy northside st-agnes lakeview; do
    confide node init --name "$name" --listen "$name:7000" --home "/homes/$name" > /dev/null
done
confide node init --name hillcrest --outbound --home /homes/hillcrest > /dev/null
confide node init --name relay --listen relay:7443 --home /homes/relay > /dev/null
for name in mercy northside st-agnes lakeview hillcrest; do
    parties="$parties --party /homes/$name/card.toml=$(($(wc -l < "$name.csv") - 1))"
done
# shellcheck disable=SC2086  # one word for each
confide federation new --name readmission $parties --relay /homes/relay/card.toml --schema schema.toml --graph ring \
    --epsilon 8 --delta 1e-5 --weighting rows --penalty L2:strength=0.001 --algorithm CDPADMM --set rounds=50 \
    --set step=15 --set coupling=0.004 --set clip=1.0 --timeout 300
for name in mercy northside st-agnes lakeview hillcrest; do
    confide federation sign federation.toml --home "/homes/$name" --yes > /dev/null
done
if [ "$(id -u)" = 0 ]; then chown -R 10001:10001 /agreed /homes; fi
