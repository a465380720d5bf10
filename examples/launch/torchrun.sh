#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains runs/NAME with 2 ranks per node under torchrun, which starts them again if one fails:
#   torchrun.sh NAME DATA [OPTION=VALUE...]
# On several nodes start it on each of them: NODES=2 HEAD=HOST torchrun.sh NAME DATA. HOST is the first node's name.
set -eu
launch=$(dirname "$0")
exec torchrun --no-python --nnodes="${NODES:-1}" --nproc-per-node="${RANKS:-2}" --max-restarts=3 \
  --rdzv-backend=c10d --rdzv-endpoint="${HEAD:-localhost}:${PORT:-29500}" --rdzv-id="$1" "$launch/train_or_resume" "$@"
