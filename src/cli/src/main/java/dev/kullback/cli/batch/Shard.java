package dev.kullback.cli.batch;

import dev.kullback.cli.terminal.UserError;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The i-th of n parts of consecutive rows, from 1, of sizes that differ by one at most. */
public record Shard(int number, int count) {
  public static final Shard WHOLE = new Shard(1, 1);

  public int from(int rows) {
    return (int) ((long) (number - 1) * rows / count);
  }

  /** Returns the row behind the last. */
  public int to(int rows) {
    return (int) ((long) number * rows / count);
  }

  public boolean isWhole() {
    return count == 1;
  }

  /** Throws if there are more shards than rows. */
  public void requireRows(int rows, Path file) {
    if (count > rows) {
      throw new UserError(
          file, "has %d rows: --shard %s wants %d shards of them".formatted(rows, this, count));
    }
  }

  @Override
  public String toString() {
    return number + "/" + count;
  }

  public static final class Converter implements ITypeConverter<Shard> {
    private static final Pattern FORM = Pattern.compile("(\\d{1,9})/(\\d{1,9})");

    @Override
    public Shard convert(String text) {
      Matcher form = FORM.matcher(text);
      if (!form.matches()) {
        throw new TypeConversionException("'" + text + "' is not a shard: give i/n, such as 1/8");
      }
      Shard shard = new Shard(Integer.parseInt(form.group(1)), Integer.parseInt(form.group(2)));
      if (shard.number < 1 || shard.number > shard.count) {
        throw new TypeConversionException(
            shard.count == 0
                ? "'" + text + "' is no shard: n must be at least 1"
                : "'%s' is none of the shards 1/%2$d to %2$d/%2$d: they count from 1"
                    .formatted(text, shard.count));
      }
      return shard;
    }
  }
}
