// The commands of `strata`, a file a group. Each function adds its commands to the application; a
// command that was chosen leaves what is to be done in Session::run.
#pragma once

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace CLI {
class App;
}

namespace strata::cli {

void AddWriteCommands(CLI::App& app, Session& session);  // create, update, delete, restore
void AddEditCommand(CLI::App& app, Session& session);
void AddReadCommands(CLI::App& app, Session& session);        // get, list
void AddHistoryCommands(CLI::App& app, Session& session);     // history, diff, audit
void AddCollectionCommands(CLI::App& app, Session& session);  // collections
// enroll, unenroll, enrollments, roster, purge-tombstones
void AddEnrollmentCommands(CLI::App& app, Session& session);
void AddTransactionCommands(CLI::App& app, Session& session);  // commit, transactions
void AddLeaseCommands(CLI::App& app, Session& session);        // lease
void AddQueueCommands(CLI::App& app, Session& session);        // queue, schedule
void AddPushCommand(CLI::App& app, Session& session);
// pop, reserve, ack, rollback, extend, move, messages, replay, purge
void AddMessageCommands(CLI::App& app, Session& session);
void AddWorkCommand(CLI::App& app, Session& session);
void AddWatchCommand(CLI::App& app, Session& session);
void AddSubscriptionCommands(CLI::App& app, Session& session);  // subscriptions
void AddConsumeCommand(CLI::App& app, Session& session);
void AddApplyCommand(CLI::App& app, Session& session);
void AddVerifyCommand(CLI::App& app, Session& session);
void AddImportCommand(CLI::App& app, Session& session);
void AddExportCommand(CLI::App& app, Session& session);
void AddStatusCommand(CLI::App& app, Session& session);
// completion, man; `version` is the program's.
void AddShellCommands(CLI::App& app, Session& session, const std::string& version);

// Runs one command line, `arguments` without the program's name, and answers the exit status: 0, 1
// if the server refused, 2 if the command line is not understood. Standard output has the answer
// and nothing else; all that is said about it goes to standard error. A long command that Ctrl-C
// ended answers 130.
int RunStrata(const std::vector<std::string>& arguments, Terminal terminal);

}  // namespace strata::cli
