package dev.kullback.cli.command;

import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;

@Command(
    name = "index",
    description = {
      "Keeps Gaussians under ids in a folder, diagonal ones or of full covariances, and searches them.",
      "The folder is that of the library's KlIndex. One process at a time can change it; query, info and export read it meanwhile.",
    },
    sortOptions = false,
    synopsisSubcommandLabel = "create|add|remove|compact|query|info|export FOLDER",
    footer = {
      "",
      "Examples:",
      "  kullback index create FOLDER --mean P.npy --std T.npy --ids J.npy",
      "  kullback index query FOLDER -k 10 --mean Q.npy --std S.npy --indices I.npy -o V.npy",
      "  kullback index query --help",
    })
final class IndexCommand {
  /** Returns the class of each command below this one, in the order in which help shows them. */
  static Map<String, Class<?>> all() {
    Map<String, Class<?>> all = new LinkedHashMap<>();
    all.put("create", IndexCreate.class);
    all.put("add", IndexAdd.class);
    all.put("remove", IndexRemove.class);
    all.put("compact", IndexCompact.class);
    all.put("query", IndexSearch.class);
    all.put("info", IndexInfo.class);
    all.put("export", IndexExport.class);
    return all;
  }
}
