#include "clients/cli/event_table.h"

#include <utility>

#include "clients/cli/message_json.h"
#include "clients/cli/version_cells.h"

namespace strata::cli {

EventTable::EventTable(Session& session)
    : session_(session),
      table_({"COMMIT", "TIME", "COLLECTION", "ID", "VERSION", "KIND", "ACTOR", "REASON"},
             session.palette()) {
  table_.AlignRight(0);
  table_.AlignRight(4);
}

void EventTable::Add(const v1::Document& document, int64_t position) {
  if (session_.json) {
    session_.out() << MessageJson(document) << "\n";
    return;
  }
  table_.AddRow(
      {std::to_string(position), CommitTimeCell(document.has_update_time(), document.update_time()),
       document.collection(), document.id(), std::to_string(document.version()), "copy", "", ""});
}

void EventTable::Add(const v1::Event& event, std::vector<std::string> notes) {
  if (session_.json) {
    session_.out() << MessageJson(event) << "\n";
    return;
  }
  const std::string place = PlaceCell(event.position(), event.index());
  if (event.type() != v1::EVENT_TYPE_VERSION) {
    table_.AddRow({place, "-", event.collection(), "-", "-", "collection deleted", "", ""});
    table_.AddNote(std::move(notes));
    return;
  }
  const std::vector<std::string> version = VersionCells(event.version());
  table_.AddRow({place, version[2], event.collection(), event.id(), version[0], version[1],
                 version[3], version[4]});
  table_.AddNote(std::move(notes));
  if (event.left_filter()) table_.AddNote({"(left the filter)"});
  if (event.content_missing()) table_.AddNote({"(its collection has been deleted)"});
  if (event.truncated()) table_.AddNote({"(too large to be shown: strata get has it)"});
  table_.AddNote(TransactionNote(event.version()));
  table_.AddNote(ContentLines(event.version()));
  table_.AddNote(ChangeNotes(event.version(), session_.palette()));
}

void EventTable::Flush() {
  table_.Flush(session_.out());
  session_.out().flush();
}

}  // namespace strata::cli
