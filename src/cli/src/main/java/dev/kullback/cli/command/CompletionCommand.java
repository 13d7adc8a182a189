package dev.kullback.cli.command;

import dev.kullback.Backend;
import java.util.Locale;
import java.util.stream.Stream;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

@Command(
    name = "completion",
    description = "Prints a script for bash or zsh that completes commands, options and files.",
    footer = {
      "",
      "Examples:",
      "  kullback completion bash > kullback.bash",
      "  eval \"$(./kullback completion zsh)\"",
    })
final class CompletionCommand implements Runnable {
  private static final String ANY_FILE = "compgen -f -- \"${curr_word}\"";

  private static final String FILES =
      """

      # Arrays, pictures and folders, or where no array or picture begins like that, any file.
      function _kullback_files() {
        local file
        local found="$(compgen -f -- "$1" | while IFS= read -r file; do
          # zsh's compgen gives those that begin otherwise, too
          [[ $file == "$1"*.np[yz] || $file == "$1"*.png ]] && printf '%s\\n' "$file"
        done)"
        if [ -n "$found" ]; then
          printf '%s\\n' "$found"
          compgen -d -- "$1"
        else
          compgen -f -- "$1"
        fi
      }
      """;

  enum Shell {
    BASH,
    ZSH
  }

  @Spec CommandSpec spec;

  @Parameters(paramLabel = "SHELL", description = "bash or zsh.")
  void setShell(Shell shell) {} // picocli's script is for both

  @Override
  public void run() {
    CommandLine kullback = spec.root().commandLine();
    String script = AutoComplete.bash(spec.root().name(), kullback);
    for (Enum<?> value :
        Stream.<Enum<?>[]>of(Backend.values(), Shell.values()).flatMap(Stream::of).toList()) {
      // as our texts write them; bash tells them apart
      script =
          script.replace(
              '"' + value.name() + '"', '"' + value.name().toLowerCase(Locale.ROOT) + '"');
    }
    script = script.replace(ANY_FILE, "_kullback_files \"${curr_word}\"");
    spec.commandLine().getOut().print(script + FILES);
    spec.commandLine().getOut().flush();
  }
}
