package dev.kullback.cli.output;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Files that appear together, or none of them. */
public final class OutputFiles implements Closeable {
  private final List<OutputFile> files = new ArrayList<>();

  /**
   * Creates the temporary files; throws if two names lead to the same file.
   *
   * @param replaces whether files that are there are replaced; else they are refused
   */
  public OutputFiles(Collection<Path> names, boolean replaces) throws IOException {
    try {
      for (Path name : names) {
        OutputFile file = new OutputFile(name, replaces);
        files.add(file);
        for (OutputFile other : files.subList(0, files.size() - 1)) {
          file.requireOther(other);
        }
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  public int size() {
    return files.size();
  }

  public OutputFile get(int i) {
    return files.get(i);
  }

  /** Returns the file of the second name, if two were given. */
  public @Nullable OutputFile second() {
    return files.size() < 2 ? null : files.get(1);
  }

  public void commit() {
    OutputFile.commit(files);
  }

  /** Without effect on committed files. */
  @Override
  public void close() throws IOException {
    for (OutputFile file : files) {
      file.close();
    }
  }
}
