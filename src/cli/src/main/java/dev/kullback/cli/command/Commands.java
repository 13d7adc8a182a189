package dev.kullback.cli.command;

import dev.kullback.cli.terminal.UserError;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/** The list of commands. */
public final class Commands {
  public static final String COMPLETION = "completion";
  private static final String INDEX = "index";

  /** The commands that the {@code kullback} script knows of its own. */
  public enum OfTheScript {
    SPARK(false, "Searches on Apache Spark, which the first use downloads."),
    TEST(true, "Builds and tests Kullback."),
    BENCH(true, "Runs the benchmarks."),
    JDK(true, "Prints the folder of the JDK that is taken, or installs one.");

    /** Whether it serves those who work on Kullback itself, and not its users. */
    final boolean isOfDevelopers;

    private final String description;

    OfTheScript(boolean isOfDevelopers, String description) {
      this.isOfDevelopers = isOfDevelopers;
      this.description = description;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }

    /** Makes the command as it is here: help and completion know it, and a call says where it is. */
    CommandSpec spec() {
      Runnable call =
          () -> {
            throw new UserError(
                this + ": is a command of the script kullback: run ./kullback " + this);
          };
      CommandSpec spec = CommandSpec.wrapWithoutInspection(call);
      spec.usageMessage().description(description);
      spec.parser().unmatchedArgumentsAllowed(true);
      return spec;
    }
  }

  private Commands() {}

  /** Adds the commands that the script knows of its own to a line that has all others. */
  public static void addOfTheScript(CommandLine line) {
    for (OfTheScript command : OfTheScript.values()) {
      line.addSubcommand(command.toString(), command.spec());
    }
    line.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, Commands::list);
  }

  /** Writes the list of commands, those of developers last, in a group of their own. */
  private static String list(Help help) {
    Map<String, Help> users = new LinkedHashMap<>(help.subcommands());
    Map<String, Help> developers = new LinkedHashMap<>();
    for (OfTheScript command : OfTheScript.values()) {
      if (command.isOfDevelopers) {
        developers.put(command.toString(), users.remove(command.toString()));
      }
    }
    return help.commandList(users)
        + "%n%s%n".formatted("Commands for work on Kullback itself:")
        + help.commandList(developers);
  }

  /** Returns the class of each command, in the order in which help shows them. */
  public static Map<String, Class<?>> all() {
    Map<String, Class<?>> all = new LinkedHashMap<>();
    all.put("pairwise", Pairwise.class);
    all.put("aligned", Aligned.class);
    all.put("standard", Standard.class);
    all.put("topk", TopK.class);
    all.put("merge", Merge.class);
    all.put("within", Within.class);
    all.put("logsumexp", LogSumExp.class);
    all.put("gradient", Gradient.class);
    all.put("density", Density.class);
    all.put("responsibilities", Responsibilities.class);
    all.put("entropy", Entropy.class);
    all.put("mixture-kl", MixtureDivergence.class);
    all.put("reduce", Reduce.class);
    all.put(INDEX, IndexCommand.class);
    all.put("verify", VerifyCommand.class);
    all.put("info", InfoCommand.class);
    all.put("demo", Demo.class);
    all.put(COMPLETION, CompletionCommand.class);
    return all;
  }

  /** Hides the options of low-rank covariances in the help of a command that refuses them, and says what to give in their place. */
  public static void hideRefused(String name, CommandLine line) {
    List<String> hidden =
        switch (name) {
          case "density", "responsibilities" -> List.of("--p-cov-factor");
          case "gradient" -> List.of("--cov-factor", "--p-cov-factor");
          case "create", "add", "query" -> List.of("--cov-factor");
          default -> List.of();
        };
    CommandSpec spec = line.getCommandSpec();
    for (String option : hidden) {
      OptionSpec shown = spec.findOption(option);
      if (shown != null) {
        spec.remove(shown);
        spec.addOption(shown.toBuilder().hidden(true).build());
      }
    }
  }

  /** Returns the class of each command that is named behind this one; none of most. */
  public static Map<String, Class<?>> below(String name) {
    return name.equals(INDEX) ? IndexCommand.all() : Map.of();
  }
}
