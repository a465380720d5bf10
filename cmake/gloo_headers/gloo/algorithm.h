// SPDX-License-Identifier: Apache-2.0
// Stand-in: torch's header of its process group includes this file of Gloo and uses nothing of it.
#pragma once
