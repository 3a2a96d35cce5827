// What a process has to set right about itself before it serves.
#pragma once

#include <signal.h>

namespace strata::app {

// Opens those of descriptors 0, 1 and 2 that are closed on /dev/null. Else the first files that are
// opened get their numbers, and what is printed goes into these. Call it before anything is opened.
void OpenStandardDescriptors();

// Raises the soft limit of open files to the hard one: connections and tables share them.
void RaiseDescriptorLimit();

// SIGTERM, SIGINT and SIGHUP, blocked for this thread and all that it starts: they are taken by
// waiting for them. SIGPIPE, SIGUSR1 and SIGUSR2 are ignored.
sigset_t BlockSignals();

}  // namespace strata::app
