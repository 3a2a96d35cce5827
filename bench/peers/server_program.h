// What starting the server of any peer takes: its program, a port, patience, and an end to it.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata::bench {

// From now on SIGINT, SIGTERM and SIGHUP no longer end the process at once, but set Interrupted,
// so that servers are stopped and folders removed on the way out.
void TakeSignals();
bool Interrupted();

struct InterruptedError : std::runtime_error {
  InterruptedError() : std::runtime_error("interrupted") {}
};

// The first of the paths that is a program. Throws, naming `name` and what installs it, if none is.
std::string FindProgram(const std::string& name, const std::vector<std::string>& paths);

// On loopback, free at the time of the call.
std::vector<int> FreePorts(size_t count);

// Asks `serves` again and again. Throws with the end of the log if it is not so in `patience`, and
// InterruptedError.
void AwaitServer(const std::string& name, const std::string& log, std::chrono::seconds patience,
                 const std::function<bool()>& serves);

// Of a log that may be long; what a person must see to know what went wrong.
std::string LastLines(const std::string& path);

// So that others on this machine, who can reach the port, cannot become the server's user.
std::string RandomPassword();

// Throws if files in the folder are in memory, where nothing is durable and fsync is free.
void RequireDisk(const std::string& folder);

}  // namespace strata::bench
