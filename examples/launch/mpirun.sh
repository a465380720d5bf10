#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains with 2 ranks of this machine under mpirun (Open MPI or MPICH):
#   mpirun.sh DATA run=NAME [OPTION=VALUE...]
# mpirun starts nothing again; give the same command, which goes on with the run. Ranks of several nodes meet at rank
# 0's. Open MPI: mpirun -n 4 --hostfile FILE -x MASTER_ADDR=HOST -x MASTER_PORT=29500 stoker train ...
# MPICH: mpirun -n 4 -f FILE -genv MASTER_ADDR HOST -genv MASTER_PORT 29500 stoker train ...
set -eu
exec mpirun -n "${RANKS:-2}" stoker train "$@"
