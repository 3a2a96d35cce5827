// Records of transactions: any bytes are a record or corrupt, and a record is written as it reads.
#include <string>

#include "schemas/base/error.h"
#include "schemas/versioning/transaction_record.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using versioning::TransactionRecord;

std::string SomeBytes(Input& input) {
  TransactionRecord record;
  record.status = static_cast<versioning::TransactionStatus>(1 + input.Below(6));
  record.mode = static_cast<versioning::TransactionMode>(1 + input.Below(2));
  record.create_time = input.Integer();
  record.change = {input.Text(), input.Text(), input.Text(), {}};
  while (input.Chance(3)) record.change.labels[input.Text()] = input.Text();
  record.fingerprint = input.Raw(input.Below(40));
  while (input.Chance(2)) {
    record.participants.push_back({{input.Name(), input.Name()},
                                   input.Integer(),
                                   input.Integer(),
                                   input.Integer(),
                                   input.Chance(2),
                                   input.Chance(2),
                                   input.Take<int32_t>()});
  }
  while (input.Chance(3)) record.data.push_back(input.Raw(input.Below(40)));
  record.cause = input.Text();
  std::string bytes = record.Encode();
  while (input.Chance(2)) bytes[input.Take<uint16_t>() % bytes.size()] ^= input.Byte();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string bytes = input.Chance(2) ? input.Rest() : SomeBytes(input);
  const auto read = TransactionRecord::Decode({bytes, 1, 1});
  if (!read.ok()) {
    Require(ReasonOf(read.status()) == ErrorReason::kRecordCorrupt, "what is no record is corrupt");
    return 0;
  }
  const std::string written = read->Encode();
  const auto again = TransactionRecord::Decode({written, 1, 1});
  Require(again.ok() && again->Encode() == written, "a record reads back");
  return 0;
}

}  // namespace strata::fuzz
