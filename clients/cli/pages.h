// Listings that come page by page.
#pragma once

#include <cstdint>

#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/render.h"
#include "clients/cli/session.h"

namespace strata::cli {

// Prints what `method` lists, up to the limit: `items` answers those of a response, `add` adds one
// to the table. With --json each is a line.
template <typename Response, typename Request, typename Method, typename Items, typename Add>
int PrintPages(Session& session, Request& request, Method method, const LimitOption& limit,
               Table table, const Items& items, const Add& add) {
  int64_t printed = 0;
  do {
    request.set_page_size(limit.NextPageSize(printed, kPageSize));
    Response response;
    const grpc::Status status = session.Call(method, request, &response);
    if (!status.ok()) return session.Refuse(status);
    for (const auto& item : items(response)) {
      ++printed;
      if (session.json) {
        session.out() << MessageJson(item) << "\n";
      } else {
        add(item, table);
      }
    }
    table.Flush(session.out());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && limit.NextPageSize(printed, 1) > 0 && session.out());
  return kExitOk;
}

}  // namespace strata::cli
