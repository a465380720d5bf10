#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains runs/NAME with 2 ranks of this machine under mpirun (Open MPI or MPICH):
#   mpirun.sh NAME DATA [OPTION=VALUE...]
# Ranks on several nodes meet at rank 0's node. Open MPI: mpirun -n 4 --hostfile FILE -x MASTER_ADDR=HOST
# -x MASTER_PORT=29500 ...; MPICH: mpirun -n 4 -f FILE -genv MASTER_ADDR HOST -genv MASTER_PORT 29500 ...
set -eu
launch=$(dirname "$0")
exec mpirun -n "${RANKS:-2}" "$launch/train_or_resume" "$@"
