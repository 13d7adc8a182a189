package dev.kullback.cli.output;

import dev.kullback.cli.npy.Input;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;

/** Checks the names of outputs. */
public final class Outputs {
  /** Suffixes by which programs know formats that are not written here. */
  private static final Set<String> OTHERS =
      Set.of(
          ("7z arrow bmp bz2 csv eps feather gif gz h5 hdf hdf5 jpeg jpg json jsonl mat nc npy npz parquet pdf"
                  + " pickle pkl png pt pth safetensors svg tar tgz tif tiff tsv txt webp xls xlsx xml xz yaml yml"
                  + " zip zst")
              .split(" "));

  private Outputs() {}

  /** Whether the name stands for standard output, where a command writes to it. */
  public static boolean isStandard(Path name) {
    return name.toString().equals("-");
  }

  /**
   * Refuses a name that promises another format, and that of a file that is read, too.
   *
   * @param format npy, npz or png
   */
  public static void check(Path name, String format, List<Path> inputs) {
    if (isStandard(name)) {
      throw new UserError(
          "-: this command writes files, not standard output: name one; ./- is a file of that name");
    }
    String file = String.valueOf(name.getFileName());
    String suffix = Input.suffix(name);
    boolean other = format.equals("png") ? !suffix.isEmpty() : OTHERS.contains(suffix);
    if (other && !suffix.equals(format)) {
      String stem = file.substring(0, file.length() - suffix.length());
      throw new UserError(
          name, "the output has the format .%s: name it %s%1$s".formatted(format, stem));
    }
    if (!Input.file(name).equals(name)) {
      throw new UserError(name, "is the name of an array in an archive: name a file");
    }
    for (Path input : inputs) {
      if (isSame(name, Input.file(input))) {
        throw new UserError(name, "is also an input: name another output");
      }
      if (TemporaryFile.isOne(input)) {
        throw new UserError(
            input, "is what an unfinished run left, which the next removes: rename it first");
      }
    }
  }

  /** Refuses a name that is that of a file where a folder is to be named. */
  public static void checkFolder(Path name) {
    if (isStandard(name)) {
      throw new UserError(
          "-: this command writes files, not standard output: name a folder; ./- is one of that name");
    }
    if (OTHERS.contains(Input.suffix(name))) {
      throw new UserError(name, "is the name of a file: name a folder for the .npy files");
    }
  }

  /**
   * Refuses a name that is in the folder of an index, or is a link to what is or would be: a file of the index would be replaced, and a
   * commit deletes what is named like a file of its own.
   */
  public static void checkOutside(Path name, Path index) {
    Path file = name.toAbsolutePath();
    try {
      file = OutputFile.followLinks(file);
      file = file.toRealPath();
    } catch (IOException e) { // to be made
    }
    Path parent = file.getParent();
    if (isSame(name, index) || (parent != null && isSame(parent, index))) {
      throw new UserError(name, "is in the folder of the index: name an output elsewhere");
    }
  }

  /** Whether two names lead to one file, by any link. */
  public static boolean isSame(Path a, Path b) {
    try {
      return Files.isSameFile(a, b);
    } catch (IOException e) { // one is not there
      return false;
    }
  }
}
