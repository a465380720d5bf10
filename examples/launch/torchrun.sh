#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains with 2 ranks per node under torchrun:
#   torchrun.sh DATA run=NAME [OPTION=VALUE...]
# If a rank fails, torchrun starts all of them again, and they go on with the run. On several nodes start this on each
# of them, in folders that hold the same files: NODES=2 HEAD=HOST torchrun.sh ...; HOST is the name of one of them.
set -eu
exec torchrun --no-python --nnodes="${NODES:-1}" --nproc-per-node="${RANKS:-2}" --max-restarts="${RESTARTS:-3}" \
  --rdzv-backend=c10d --rdzv-endpoint="${HEAD:-localhost}:${PORT:-29500}" stoker train "$@"
