package dev.kullback.cli.command;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/** The list of commands. */
public final class Commands {
  public static final String COMPLETION = "completion";

  private Commands() {}

  /** Returns what makes each command, in the order in which help shows them. */
  public static Map<String, Supplier<Object>> all() {
    Map<String, Supplier<Object>> all = new LinkedHashMap<>();
    all.put("pairwise", Pairwise::new);
    all.put("aligned", Aligned::new);
    all.put("standard", Standard::new);
    all.put("topk", TopK::new);
    all.put("merge", Merge::new);
    all.put("within", Within::new);
    all.put("logsumexp", LogSumExp::new);
    all.put("entropy", Entropy::new);
    all.put("verify", VerifyCommand::new);
    all.put("info", InfoCommand::new);
    all.put("demo", Demo::new);
    all.put(COMPLETION, CompletionCommand::new);
    return all;
  }
}
