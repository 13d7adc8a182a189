package dev.kullback.spark;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.JobExecutionStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.jdk.javaapi.CollectionConverters;

/** Folder of Parquet files for a result, which is there whole or not at all. */
final class OutputFolder {
  private static final String LOCAL = "file";

  /** Time that tasks of a failed job get to end, before what they wrote is deleted. */
  private static final Duration AT_MOST = Duration.ofSeconds(10);

  /** Names of the files that Spark writes with Parquet. */
  private static final Pattern WRITTEN =
      Pattern.compile(
          "part-\\d{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.].*parquet|_SUCCESS|_metadata|_common_metadata");

  /** Path as the user gave it. */
  private final String name;

  private final Path target;
  private final FileSystem files;
  private final boolean overwrite;

  /** Where the result is written until it is complete. */
  private final Path fresh;

  /**
   * @throws IllegalArgumentException if no folder can be there, or something is and is not to be replaced
   */
  OutputFolder(String name, boolean overwrite, Configuration configuration) throws IOException {
    this.name = name;
    this.overwrite = overwrite;
    Path given = new Path(name);
    files = given.getFileSystem(configuration);
    target = real(files.makeQualified(given));
    if (target.getParent() == null || (isLocal(target) && Files.isSymbolicLink(local(target)))) {
      throw new IllegalArgumentException(
          name + ": is a root, or a link to nothing; give another output");
    }
    if (!overwrite && exists(target)) {
      throw new IllegalArgumentException(name + ": is there; --overwrite replaces it");
    }
    fresh = beside("tmp");
  }

  private boolean exists(Path path) throws IOException {
    try {
      return files.exists(path);
    } catch (ParentNotDirectoryException e) { // a file, with a name behind it
      return false;
    }
  }

  /**
   * Makes the folder as {@link #open} will, and deletes it with those above it that were not there.
   *
   * @throws IllegalArgumentException if it cannot be made
   */
  void tryOut() throws IOException {
    List<Path> missing = new ArrayList<>();
    for (Path above = target.getParent();
        above != null && !exists(above);
        above = above.getParent()) {
      missing.add(above);
    }
    try {
      open();
    } finally {
      close();
      missing.forEach(above -> discard(above, false));
    }
  }

  /**
   * Makes the folder in which the result is written, so that one which cannot be is found before the search.
   *
   * @throws IllegalArgumentException if it cannot be made
   */
  void open() {
    String reason = "";
    try {
      if (files.mkdirs(fresh)) {
        files.deleteOnExit(
            fresh); // should a signal end the JVM; tasks may still begin a file after it
        return;
      }
    } catch (IOException e) {
      reason = ": " + e.getMessage();
    }
    throw new IllegalArgumentException(
        "%s: cannot be written: no folder can be made in %s%s"
            .formatted(name, target.getParent(), reason));
  }

  /** Deletes what was written of a result that is not complete. */
  void close() {
    discard(fresh, true);
    files.cancelDeleteOnExit(fresh);
  }

  /**
   * Refuses to replace anything but a file, or a folder of what this command writes.
   *
   * @param columns those of its results
   */
  void refuseOthers(SparkSession spark, List<String> columns) throws IOException {
    if (!files.exists(target)) {
      return;
    }
    if (!files.getFileStatus(target).isDirectory()) {
      if (isLocal(target) && !Files.isRegularFile(local(target))) {
        throw new IllegalArgumentException(name + ": is no regular file; give another output");
      }
      return;
    }
    boolean hasRows = false;
    for (FileStatus entry : files.listStatus(target)) {
      String file = entry.getPath().getName();
      if (!isWritten(entry)) {
        throw new IllegalArgumentException(
            "%s: is a folder with more in it than Spark's files of Parquet, such as %s; give another output"
                .formatted(name, file));
      }
      hasRows |= file.endsWith("parquet");
    }
    List<String> found = hasRows ? columns(spark) : columns;
    if (!found.equals(columns)) {
      throw new IllegalArgumentException(
          "%s: has the columns %s, so this command did not write it; give another output"
              .formatted(name, String.join(", ", found)));
    }
  }

  private static boolean isWritten(FileStatus entry) {
    return entry.isFile() && WRITTEN.matcher(entry.getPath().getName()).matches();
  }

  /** Returns the names of all columns of the files that are there. */
  private List<String> columns(SparkSession spark) {
    try {
      return List.of(spark.read().option("mergeSchema", true).parquet(target.toString()).columns());
    } catch (Exception e) {
      if (e instanceof SparkException
          || e instanceof AnalysisException) { // which Scala does not declare
        throw new IllegalArgumentException(
            name + ": has files that cannot be read as Parquet; give another output", e);
      }
      throw e;
    }
  }

  /**
   * Rejects an output that would replace an input: the same folder, one above it or one inside it.
   *
   * @param input as it was given, maybe with wildcards
   */
  void refuseInput(String input, Dataset<Row> read) throws IOException {
    Path given = new Path(input);
    FileSystem source = given.getFileSystem(files.getConf());
    List<Path> paths = new ArrayList<>();
    paths.add(source.makeQualified(given));
    FileStatus[] named = source.globStatus(given);
    if (named != null) {
      Stream.of(named).map(FileStatus::getPath).forEach(paths::add);
    }
    if (overlaps(paths) || overlaps(files(read))) {
      throw new IllegalArgumentException(
          "%s: is or holds the input %s, or lies in it; give another output"
              .formatted(name, input));
    }
  }

  /** Whether a dataset reads files that the output would replace. */
  boolean holdsFilesOf(Dataset<Row> read) throws IOException {
    return overlaps(files(read));
  }

  private static List<Path> files(Dataset<Row> read) {
    Stream<String> named = Stream.of(read.inputFiles());
    // a dataset that is cached names none, though its files are read where the cache has lost them
    // or has yet to be filled
    LogicalPlan plan =
        ((org.apache.spark.sql.classic.Dataset<Row>) read).queryExecution().analyzed();
    Stream<String> cached =
        CollectionConverters.asJava(plan.collectLeaves()).stream()
            .flatMap(leaf ->
                leaf instanceof LogicalRelation table
                        && table.relation() instanceof HadoopFsRelation files
                    ? Stream.of(files.location().inputFiles())
                    : Stream.empty());
    return Stream.concat(named, cached).distinct().map(file -> new Path(URI.create(file))).toList();
  }

  private boolean overlaps(List<Path> paths) throws IOException {
    for (Path path : paths) {
      Path file = real(path);
      if (isWithin(file, target) || isWithin(target, file)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isWithin(Path path, Path folder) {
    for (Path p = path; p != null; p = p.getParent()) {
      if (p.equals(folder)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isLocal(Path qualified) {
    return LOCAL.equals(qualified.toUri().getScheme());
  }

  private static java.nio.file.Path local(Path path) {
    return java.nio.file.Path.of(path.toUri().getPath());
  }

  /** Resolves a path's links, if it is one of this machine. */
  private static Path real(Path qualified) throws IOException {
    if (!isLocal(qualified)) {
      return qualified;
    }
    java.nio.file.Path path = local(qualified);
    Optional<java.nio.file.Path> there =
        Stream.iterate(path, p -> p != null, java.nio.file.Path::getParent)
            .filter(Files::exists)
            .findFirst();
    if (there.isEmpty()) {
      return qualified;
    }
    java.nio.file.Path folder = there.get();
    return new Path(LOCAL, null, folder.toRealPath().resolve(folder.relativize(path)).toString());
  }

  /**
   * Writes the result beside the target, moves the target aside, and moves the result to its place. After a failure the old target is where
   * it was, or the message says where it is. To be called once, after {@link #open} and before {@link #close}.
   */
  void write(Dataset<Row> result) throws IOException {
    Path old = beside("old");
    SparkContext context = result.sparkSession().sparkContext();
    String tag = UUID.randomUUID().toString();
    boolean isComplete = false;
    context.addJobTag(tag);
    try {
      result.write().mode(SaveMode.Append).parquet(fresh.toString());
      isComplete = true;
    } finally {
      context.removeJobTag(tag);
      if (!isComplete) {
        awaitTasks(context.statusTracker(), tag);
      }
    }
    boolean replaces = overwrite && files.exists(target);
    if (replaces) {
      // by now something else may be there
      refuseOthers(result.sparkSession(), List.of(result.columns()));
      rename(target, old);
    }
    try {
      rename(fresh, target);
    } catch (IOException | RuntimeException e) {
      if (replaces) {
        putBack(old, e);
      }
      throw e;
    }
    if (replaces) {
      drop(old);
    }
  }

  /** Waits for tasks of jobs that failed, as one that has just begun makes a file, and the folder for it, after both were deleted. */
  private static void awaitTasks(SparkStatusTracker tracker, String tag) {
    long deadline = System.nanoTime() + AT_MOST.toNanos();
    try {
      while (isActive(tracker, tag) && System.nanoTime() < deadline) {
        Thread.sleep(20);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean isActive(SparkStatusTracker tracker, String tag) {
    return IntStream.of(tracker.getJobIdsForTag(tag)).anyMatch(id -> isActive(tracker, id));
  }

  private static boolean isActive(SparkStatusTracker tracker, int job) {
    return tracker
        .getJobInfo(job)
        .exists(info ->
            info.status() == JobExecutionStatus.RUNNING
                || IntStream.of(info.stageIds())
                    .anyMatch(id ->
                        tracker.getStageInfo(id).exists(stage -> stage.numActiveTasks() > 0)));
  }

  private Path beside(String suffix) {
    return new Path(
        target.getParent(),
        "." + target.getName() + "." + UUID.randomUUID() + ".kullback-" + suffix);
  }

  /** Renames, and does not do what Hadoop would: copy a local folder that it cannot rename, or put the folder inside one that is there. */
  private void rename(Path from, Path to) throws IOException {
    if (files.exists(to)) {
      throw new IOException(to + " has appeared meanwhile");
    }
    if (isLocal(from)) {
      Files.move(local(from), local(to), StandardCopyOption.ATOMIC_MOVE);
    } else if (!files.rename(from, to)) {
      throw new IOException("cannot rename " + from + " to " + to);
    }
  }

  private void putBack(Path old, Exception reason) throws IOException {
    try {
      rename(old, target);
    } catch (IOException | RuntimeException e) {
      e.addSuppressed(reason);
      throw new IOException("%s is not written; what was there is now %s".formatted(name, old), e);
    }
  }

  /** Deletes what was replaced, and nothing that has come into the folder since. */
  private void drop(Path old) throws IOException {
    IOException reason = null;
    boolean isGone = false;
    try {
      if (files.getFileStatus(old).isDirectory()) {
        for (FileStatus entry : files.listStatus(old)) {
          if (isWritten(entry)) {
            files.delete(entry.getPath(), false);
          }
        }
      }
      isGone = files.delete(old, false);
    } catch (IOException e) {
      reason = e;
    }
    if (!isGone) {
      throw new IOException(
          "%s is written, but what it replaced cannot be deleted: %s".formatted(name, old), reason);
    }
  }

  /** Deletes a folder, with all in it, or if it is empty. */
  private void discard(Path folder, boolean whole) {
    try {
      files.delete(folder, whole);
    } catch (IOException e) { // what led here says more
    }
  }
}
