package dev.kullback.cli.command;

import java.util.LinkedHashMap;
import java.util.Map;

/** The list of commands. */
public final class Commands {
  public static final String COMPLETION = "completion";
  private static final String INDEX = "index";

  private Commands() {}

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

  /** Returns the class of each command that is named behind this one; none of most. */
  public static Map<String, Class<?>> below(String name) {
    return name.equals(INDEX) ? IndexCommand.all() : Map.of();
  }
}
