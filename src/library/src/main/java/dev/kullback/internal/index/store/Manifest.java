package dev.kullback.internal.index.store;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * States what an index holds, as the text of a file that is replaced whole:
 *
 * <pre>
 * kullback-index VERSION
 * dimension D
 * divergence NAME                                that the index ranks by; of an index by KL there is none
 * covariances full                               if the Gaussians have full covariances; of diagonal ones there is none
 * generation G                                   counts commits
 * next N                                         the number of the next file
 * deleted NAME LENGTH CRC                        if rows are deleted: their bits, segment by segment
 * segment NAME LENGTH ROWS DELETED HEAD CRC      one line a segment; HEAD is the checksum of its first bytes
 * obsolete NAME                                  one line a file that an earlier manifest named and that may be there yet
 * data BASE64                                    if the commit has data of the user's
 * checksum CRC                                   of the lines before
 * </pre>
 *
 * <p>The version is 1 without a divergence and full covariances, and else 2, so that a library that knows neither refuses the index.
 *
 * <p>Checksums are CRC-32C, in eight hexadecimal digits. The first and the last line are those of every version, so that damage is not taken
 * for another version.
 *
 * @param dimension D, at least 1
 * @param divergence its name
 * @param isFull whether the Gaussians have full covariances
 * @param next above the number in every name of a file
 * @param deletions the file of bits, or null if no row is deleted
 * @param obsolete names of files to be deleted
 * @param userData what the commit has of the user's; empty if there is none
 */
@SuppressWarnings("ArrayRecordComponent") // compared by its content, and not changed
record Manifest(
    int dimension,
    String divergence,
    boolean isFull,
    long generation,
    long next,
    @Nullable DeletionsFile deletions,
    List<SegmentFile> segments,
    List<String> obsolete,
    byte[] userData) {
  static final int VERSION = 1;

  /** Bytes of the user's data, at most. */
  static final int MOST_DATA = 1 << 16;

  /** The version of an index of another divergence than KL, or of full covariances. */
  static final int VERSION_OF_OTHERS = 2;

  /** The divergence of an index whose manifest has no entry for it. */
  static final String KL = "kl";

  /** The line of full covariances. */
  private static final String FULL = "covariances full";

  private static final Pattern DIVERGENCES = Pattern.compile("[a-z][a-z0-9.:+-]{0,99}");

  /** Greatest number of a commit or a file, far from where counting on would overflow. */
  static final long MOST_NUMBER = 1L << 56;

  private static final String MAGIC = "kullback-index";

  /** Files that a manifest names; the greatest numbers fit a long. */
  private static final Pattern NAMES = Pattern.compile("(segment|deleted)-([0-9]{6,18})\\.bin");

  private static final String TORN = "is incomplete or was changed";

  /** A file that holds the image of a segment. */
  record SegmentFile(String name, long length, int rows, int head, int crc) {
    /** Bytes at the beginning that have a checksum of their own, which opening compares: the header lies there. */
    static final long HEAD = 4096;

    static final String PREFIX = "segment-";
    static final String NAME = PREFIX + "%06d.bin";
  }

  /**
   * A file of the bits of deleted rows, for each segment that has any {@code ⌈rows/64⌉} words, little endian.
   *
   * @param counts the number of deleted rows of each segment of the manifest
   */
  record DeletionsFile(String name, long length, int crc, List<Integer> counts) {
    static final String PREFIX = "deleted-";
    static final String NAME = PREFIX + "%06d.bin";
  }

  int deleted(int segment) {
    return deletions == null ? 0 : deletions.counts().get(segment);
  }

  /** Returns the names of the files that make up the index. */
  Set<String> files() {
    Set<String> names = new HashSet<>();
    for (SegmentFile segment : segments) {
      names.add(segment.name());
    }
    if (deletions != null) {
      names.add(deletions.name());
    }
    return names;
  }

  byte[] text() {
    StringBuilder text = new StringBuilder();
    boolean isKl = divergence.equals(KL);
    text.append("%s %d\n".formatted(MAGIC, isKl && !isFull ? VERSION : VERSION_OF_OTHERS));
    text.append("dimension %d\n".formatted(dimension));
    text.append(isKl ? "" : "divergence %s\n".formatted(divergence));
    text.append(isFull ? FULL + '\n' : "");
    text.append("generation %d\nnext %d\n".formatted(generation, next));
    if (deletions != null) {
      text.append(
          "deleted %s %d %08x\n".formatted(deletions.name(), deletions.length(), deletions.crc()));
    }
    for (int s = 0; s < segments.size(); s++) {
      SegmentFile f = segments.get(s);
      text.append(
          "segment %s %d %d %d %08x %08x\n"
              .formatted(f.name(), f.length(), f.rows(), deleted(s), f.head(), f.crc()));
    }
    for (String name : obsolete) {
      text.append("obsolete %s\n".formatted(name));
    }
    if (userData.length > 0) {
      text.append("data %s\n".formatted(Base64.getEncoder().encodeToString(userData)));
    }
    text.append("checksum %08x\n".formatted(crc(bytes(text.toString()))));
    return bytes(text.toString());
  }

  /** Whether a text is the beginning of one, be it empty. */
  static boolean isBegun(byte[] bytes) {
    byte[] magic = bytes(MAGIC + ' ');
    int n = Math.min(magic.length, bytes.length);
    return Arrays.equals(bytes, 0, n, magic, 0, n);
  }

  /**
   * Reads a text.
   *
   * @throws IllegalArgumentException if it is none of an index, or not as it was written; the message, to be put behind the file's name,
   *     says which
   * @throws OtherVersionException if it is of another version
   */
  static Manifest of(byte[] bytes) {
    String text = new String(bytes, StandardCharsets.US_ASCII);
    int line = text.indexOf('\n');
    String[] first = (line < 0 ? text : text.substring(0, line)).split(" ", -1);
    check(first[0].equals(MAGIC), "is not the manifest of an index");
    check(line >= 0 && first.length == 2, TORN);
    int last = text.lastIndexOf('\n', text.length() - 2) + 1;
    byte[] before = bytes(text.substring(0, last));
    check(text.substring(last).equals("checksum %08x\n".formatted(crc(before))), TORN);
    boolean isFirst = first[1].equals(Integer.toString(VERSION));
    if (!isFirst && !first[1].equals(Integer.toString(VERSION_OF_OTHERS))) {
      throw new OtherVersionException(
          "has format version %s, and this version of Kullback reads %d and %d; take the one that wrote it"
              .formatted(first[1].replaceAll("[^0-9]", "?"), VERSION, VERSION_OF_OTHERS));
    }
    List<String> lines = new ArrayList<>(List.of(text.substring(line + 1, last).split("\n")));
    String divergence = KL;
    boolean isFull = false;
    if (!isFirst) {
      check(lines.size() > 2, TORN);
      if (lines.get(1).startsWith("divergence")) {
        divergence = words(lines.remove(1), "divergence", 2)[1];
        check(
            DIVERGENCES.matcher(divergence).matches() && !divergence.equals(KL),
            "has the invalid divergence " + divergence);
      }
      isFull = lines.get(1).equals(FULL);
      if (isFull) {
        lines.remove(1);
      }
      check(isFull || !divergence.equals(KL), TORN);
    }
    return parse(divergence, isFull, lines.toArray(new String[0]));
  }

  private static Manifest parse(String divergence, boolean isFull, String[] lines) {
    check(lines.length >= 3, TORN);
    int most = isFull ? FullBatch.MOST_DIMENSIONS : DiagonalBatch.MOST_DIMENSIONS;
    long dimension = number(words(lines[0], "dimension", 2)[1], 1, most);
    long generation = number(words(lines[1], "generation", 2)[1], 0, MOST_NUMBER);
    long next = number(words(lines[2], "next", 2)[1], 0, MOST_NUMBER);
    boolean deletes = lines.length > 3 && lines[3].startsWith("deleted ");
    List<SegmentFile> segments = new ArrayList<>();
    List<Integer> counts = new ArrayList<>();
    int k = deletes ? 4 : 3;
    for (; k < lines.length && lines[k].startsWith("segment "); k++) {
      String[] w = words(lines[k], "segment", 7);
      long rows = number(w[3], 1, Integer.MAX_VALUE);
      counts.add((int) number(w[4], 0, deletes ? rows - 1 : 0));
      long length = number(w[2], 0, Long.MAX_VALUE);
      String name = name(w[1], SegmentFile.PREFIX, next);
      segments.add(new SegmentFile(name, length, (int) rows, hex(w[5]), hex(w[6])));
    }
    List<String> obsolete = new ArrayList<>();
    byte[] data = {};
    int end = lines.length;
    if (lines[end - 1].startsWith("data ")) {
      end--;
      data = data(words(lines[end], "data", 2)[1]);
    }
    for (; k < end; k++) {
      obsolete.add(name(words(lines[k], "obsolete", 2)[1], "", next));
    }
    long names = segments.stream().map(SegmentFile::name).distinct().count();
    check(names == segments.size(), "names a segment twice");
    DeletionsFile deletions = null;
    if (deletes) {
      String[] w = words(lines[3], "deleted", 4);
      deletions =
          new DeletionsFile(
              name(w[1], DeletionsFile.PREFIX, next),
              number(w[2], 0, Long.MAX_VALUE),
              hex(w[3]),
              List.copyOf(counts));
    }
    Manifest read =
        new Manifest(
            (int) dimension,
            divergence,
            isFull,
            generation,
            next,
            deletions,
            List.copyOf(segments),
            List.copyOf(obsolete),
            data);
    check(Collections.disjoint(obsolete, read.files()), "has a file that is obsolete");
    return read;
  }

  private static String[] words(String line, String first, int count) {
    String[] words = line.split(" ", -1);
    check(words.length == count && words[0].equals(first), "has the unknown line \"" + line + '"');
    return words;
  }

  private static long number(String word, long least, long most) {
    try {
      long number = Long.parseLong(word);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException e) {
      // as any other that is not valid
    }
    throw new IllegalArgumentException("has the invalid number " + word);
  }

  private static byte[] data(String word) {
    try {
      byte[] data = Base64.getDecoder().decode(word);
      check(data.length <= MOST_DATA, TORN);
      return data;
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("has invalid data of the user's");
    }
  }

  private static int hex(String word) {
    try {
      return Integer.parseUnsignedInt(word, 16);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("has the invalid checksum " + word);
    }
  }

  /** Lets no name lead out of the folder, or be that of a later commit's file. */
  private static String name(String word, String prefix, long next) {
    boolean valid = word.startsWith(prefix) && NAMES.matcher(word).matches();
    check(valid && number(word) < next, "names the file " + word + ", which is none of an index");
    return word;
  }

  /** Returns the number of the file of a segment or of deleted rows; −1 for other names. */
  static long number(String name) {
    Matcher matcher = NAMES.matcher(name);
    return matcher.matches() ? Long.parseLong(matcher.group(2)) : -1;
  }

  private static void check(boolean valid, String reason) {
    if (!valid) {
      throw new IllegalArgumentException(reason);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  static int crc(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }
}
