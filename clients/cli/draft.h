// A text that a person edits: in a file for the time being, with the editor of their choice.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::cli {

// How an editor ended.
struct EditorEnd {
  int exit_status = 0;  // 128 and the signal that ended it, as shells count
  bool well() const { return exit_status == 0; }
};

// A file that only its owner can read (mode 0600), in the folder that TMPDIR names, else /tmp. It
// stays unless Remove is called.
class Draft {
 public:
  // INTERNAL if it cannot be written, with how to choose another folder.
  static absl::StatusOr<Draft> Write(const std::string& text);

  const std::string& path() const { return path_; }

  // Runs $VISUAL (not on a terminal without cursor), else $EDITOR, else vi, as a shell does: with
  // its arguments, and quotes. Returns when it has ended; Ctrl-C is the editor's meanwhile.
  EditorEnd Edit() const;

  // What stands there now. INTERNAL if it cannot be read.
  absl::StatusOr<std::string> Read() const;

  void Remove() const;

 private:
  explicit Draft(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// `text` as one word of a shell's command line.
std::string ShellWord(const std::string& text);

}  // namespace strata::cli
