package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.ChildJvm;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kills a process that changes an index, merges, commits and purges, over and over, and opens what it left: the state of the last commit that it
 * told of, or of the next one, with the data that came with it. The next process goes on from there.
 */
class KillTest {
  private static final int DIMENSION = 16;

  /** Commits that a process tells of before it is killed, at most: as many on a busy machine. */
  private static final int LONGEST_LIFE = 20;

  /** Milliseconds that it lives on, at most. */
  private static final int LONGEST_REST = 50;

  @TempDir private Path scratch;

  @Test
  void whatWasCommittedSurvives() throws Exception {
    kill(3, 1);
  }

  @Test
  @Tag("long")
  void whatWasCommittedSurvivesManyTimes() throws Exception {
    kill(Integer.getInteger("tests.kills", 25), 2);
  }

  private static Index open(Path folder) {
    return Index.open(folder, DIMENSION, new TestFiles(), Segment::merge);
  }

  private void kill(int times, long seed) throws Exception {
    Path folder = scratch.resolve("index");
    open(folder).close();
    Random random = new Random(seed);
    Map<Long, Long> expected = new TreeMap<>();
    long commits = 0;
    for (int k = 0; k < times; k++) {
      long told = liveAndDie(folder, random.nextInt(LONGEST_LIFE), random.nextInt(LONGEST_REST));
      try (Index index = open(folder)) {
        Map<Long, Long> content = Content.of(index);
        long survived = content.getOrDefault(0L, 0L);
        String what = "kill %d, commits told of: %d".formatted(k, told);
        assertThat(survived)
            .as(what)
            .isBetween(Math.max(told, commits), Math.max(told, commits) + 1);
        for (; commits < survived; commits++) {
          change(new Model(expected), commits + 1);
        }
        assertThat(content).as(what).isEqualTo(expected);
        assertThat(index.userData()).as(what).isEqualTo(data(commits));
        index.verify();
      }
    }
    assertThat(commits).as("work was done between the kills").isPositive();
  }

  /** Runs a process on the index for so many commits and milliseconds, and returns the number of the last commit that it told of, or 0. */
  private long liveAndDie(Path folder, int commits, int milliseconds) throws Exception {
    Path out = scratch.resolve("out");
    Path err = scratch.resolve("err");
    Files.deleteIfExists(out);
    Process process =
        ChildJvm.start(
            out,
            err,
            List.of(
                "--add-modules",
                "jdk.incubator.vector",
                "-Xmx256m",
                "-cp",
                System.getProperty("java.class.path"),
                Life.class.getName(),
                folder.toString()));
    while (process.isAlive() && lines(out).size() <= commits) { // it tells that it is open, too
      Thread.sleep(2);
    }
    Thread.sleep(milliseconds);
    assertThat(process.isAlive()).as("%s", Files.readString(err)).isTrue();
    process.destroyForcibly().waitFor();
    List<String> lines = lines(out);
    return lines.size() < 2 ? 0 : Long.parseLong(lines.getLast());
  }

  /** The lines that are complete. */
  private static List<String> lines(Path out) throws IOException {
    String text = Files.exists(out) ? Files.readString(out) : "";
    return text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
  }

  /** An index, or a map of what it holds. */
  private interface Holder {
    void remove(long[] ids);

    void replace(long[] ids, long version);
  }

  /** Makes the changes from one commit to the next, numbered from 1: the same ones whenever and on whatever they are made. */
  private static void change(Holder holder, long commit) {
    Random random = new Random(commit);
    for (int k = random.nextInt(3); k >= 0; k--) {
      holder.remove(range(random.nextInt(20_000), random.nextInt(2000)));
    }
    for (int k = random.nextInt(12); k >= 0; k--) {
      int n = random.nextInt(4) == 0 ? 1000 : 1;
      holder.replace(range(1 + random.nextInt(20_000), n), random.nextInt(1000));
    }
    holder.replace(new long[] {0}, commit);
  }

  /** The data of a commit; none before the first. */
  private static byte[] data(long commit) {
    return commit == 0 ? new byte[0] : Long.toString(commit).getBytes(StandardCharsets.US_ASCII);
  }

  private static long[] range(long first, int n) {
    return LongStream.range(first, first + n).toArray();
  }

  /** A map of what an index should hold. */
  private record Model(Map<Long, Long> content) implements Holder {
    @Override
    public void remove(long[] ids) {
      Arrays.stream(ids).forEach(content::remove);
    }

    @Override
    public void replace(long[] ids, long version) {
      Arrays.stream(ids).forEach(id -> content.put(id, version));
    }
  }

  /** Changes an index and commits; tells when it has opened the index, and of each commit. */
  private record Life(Index index) implements Holder {
    @Override
    public void remove(long[] ids) {
      index.remove(ids);
    }

    @Override
    public void replace(long[] ids, long version) {
      long[] versions = new long[ids.length];
      Arrays.fill(versions, version);
      index.replace(ids, Content.batch(DIMENSION, false, versions));
    }

    public static void main(String[] args) {
      Life life = new Life(open(Path.of(args[0])));
      long commits = Content.of(life.index).getOrDefault(0L, 0L);
      System.out.println("open");
      while (true) {
        change(life, ++commits);
        switch (Math.toIntExact(commits % 8)) {
          case 3 -> {
            life.index.compact();
            life.index.commit(data(commits));
          }
          case 7 -> {
            life.index.commit(data(commits));
            life.index.purge();
          }
          default -> life.index.commit(data(commits));
        }
        System.out.println(commits);
      }
    }
  }
}
