package dev.kullback.cli.batch;

import dev.kullback.ScaleKind;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.terminal.UserError;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** The options that name a batch's files: {@code --mean ...} for q, {@code --p-mean ...} for p. */
public final class BatchOptions {
  /** Kinds of scales that there is an option for, in the order in which these are declared. */
  private static final List<ScaleKind> KINDS =
      List.of(
          ScaleKind.STD,
          ScaleKind.VARIANCE,
          ScaleKind.LOG_VARIANCE,
          ScaleKind.PRECISION,
          ScaleKind.SCALE_TRIL,
          ScaleKind.PACKED_SCALE_TRIL,
          ScaleKind.COVARIANCE,
          ScaleKind.PRECISION_CHOLESKY);

  /** The axis of channels where no option names another. */
  private static final int CHANNELS = 1;

  private BatchOptions() {}

  /**
   * The files of a batch.
   *
   * @param kind that the option is named after; {@code --precision} may name matrices, too
   * @param prefix begins the names of the options: {@code --} or {@code --p-}
   * @param axis of moments, where both are one file, the axis whose first half is the means and whose second the scales; else 0
   * @param arePoints whether the one file is of points, which have no scales
   * @param factor of factors W, whose WWᵀ is added to the diagonal that the scales state
   */
  public record Files(
      String prefix,
      Path mean,
      ScaleKind kind,
      Path scale,
      int axis,
      boolean arePoints,
      @Nullable Path factor) {
    /** Makes the files of q. */
    public Files(Path mean, ScaleKind kind, Path scale) {
      this("--", mean, kind, scale, 0, false, null);
    }

    /** Makes the file of points. */
    static Files ofPoints(Path points) {
      return new Files("--", points, ScaleKind.STD, points, 0, true, null);
    }

    /** Returns the file of factors, or of scales if there is none. */
    Path matrices() {
      return factor == null ? scale : factor;
    }

    /**
     * Throws where covariances are of low rank.
     *
     * @param by what does not take them
     * @param kind of the matrices to give instead, covariances or their lower factors
     * @param other what to do else, or nothing
     */
    public void refuseLowRank(String by, ScaleKind kind, String other) {
      if (factor != null) {
        throw new UserError(
            factor,
            "is given as %scov-factor, but %s takes no low-rank covariances: give %sdiag(v) + W W^T, [N,D,D], as %s%s"
                .formatted(
                    prefix,
                    by,
                    kind == ScaleKind.SCALE_TRIL ? "the lower Cholesky factor of " : "",
                    option(kind),
                    other));
      }
    }

    /** Throws where full covariances are not given by factors L, which alone something takes. */
    public void refuseCovariances(String by) {
      if (kind == ScaleKind.COVARIANCE || kind == ScaleKind.PRECISION_CHOLESKY) {
        throw new UserError(
            scale,
            "is given as %s, but %s is by the lower Cholesky factor L of S = L L^T: give L, [N,D,D], as %s"
                .formatted(option(kind), by, option(ScaleKind.SCALE_TRIL)));
      }
    }

    private Files with(Path factor) {
      return new Files(prefix, mean, kind, scale, axis, arePoints, factor);
    }

    /** Whether means and scales are halves of one array. */
    public boolean isMoments() {
      return axis != 0;
    }

    /** Returns the axis of channels of this batch and another: that of moments, which both share. */
    public int channelAxis(Files other) {
      return isMoments() ? axis : other.isMoments() ? other.axis : CHANNELS;
    }

    Stream<Path> all() {
      Stream<Path> both = isMoments() || arePoints ? Stream.of(mean) : Stream.of(mean, scale);
      return Stream.concat(both, Stream.ofNullable(factor));
    }

    /** Returns the option that names a scale file of another kind. */
    public String option(ScaleKind other) {
      return BatchOptions.option(prefix, other);
    }
  }

  private static String option(String prefix, ScaleKind kind) {
    return prefix + kind.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** Returns an axis of an array of a batch, counted from 0; where {@code axis} is below 0, it counts from the last. */
  static int axis(Files files, int axis, long[] shape) {
    int axes = shape.length;
    int at = axis < 0 ? axes + axis : axis;
    if (at < 1 || at >= axes) {
      throw new UserError(
          files.mean(),
          "has shape %s, but --axis is %d: give 1 to %d, or -%3$d to -1"
              .formatted(Batch.text(shape), axis, axes - 1));
    }
    return at;
  }

  /** Lists the files of several batches. */
  public static List<Path> inputs(Files q, List<Files> p) {
    return Stream.concat(Stream.of(q), p.stream()).flatMap(Files::all).toList();
  }

  /** The options that name what rows are of: a q, or points. */
  public interface Rows {
    Files files();
  }

  /** The option of points. */
  public static final class Points implements Rows {
    /** The points' description. */
    static final String POINTS = "Points x, [N,D]; further axes are flattened into D.";

    @Option(
        names = "--points",
        order = Q.MEAN,
        paramLabel = "X.npy",
        required = true,
        description = POINTS)
    Path points;

    @Override
    public Files files() {
      return Files.ofPoints(points);
    }
  }

  /** The options of q; which of them is given says of what kind its scales are. */
  public static class Q implements Rows {
    /** The order of the means in help, before the scales: theirs is -1. */
    public static final int MEAN = -2;

    private static final String AXIS = "--axis";

    @Spec(Spec.Target.MIXEE)
    CommandSpec command;

    @Option(
        names = "--std",
        paramLabel = "S.npy",
        description = "Standard deviations of q. All Gaussians may share scales, such as [1,D].")
    @Nullable Path std;

    @Option(
        names = {"--var", "--variance", "--cov-diag"},
        paramLabel = "V.npy",
        description = "Or its variances.")
    @Nullable Path variance;

    @Option(
        names = {"--logvar", "--log-variance"},
        paramLabel = "L.npy",
        description = "Or its log-variances.")
    @Nullable Path logVariance;

    @Option(
        names = "--precision",
        paramLabel = "W.npy",
        description = "Or its 1/variances, or precision matrices, [N,D,D].")
    @Nullable Path precision;

    @Option(
        names = "--moments",
        paramLabel = "E.npy",
        description =
            "Or, without --mean, its means and log-variances in one array of an encoder, [N,2C,...].")
    @Nullable Path moments;

    @Option(
        names = AXIS,
        paramLabel = "A",
        description =
            "Of moments, the axis whose first half is the means; -1 is the last; default: 1.")
    int axis = CHANNELS;

    @Option(
        names = "--mean",
        order = MEAN,
        paramLabel = "Q.npy",
        description =
            "Means of q, [N,D]; further axes are flattened into D. Any input may also be FILE.npz:NAME, FILE.safetensors:NAME, or text, .csv, .tsv or .txt.")
    @Nullable Path mean;

    @Option(
        names = "--scale-tril",
        paramLabel = "L.npy",
        description = "Or its full covariances' lower factors, [N,D,D].")
    @Nullable Path scaleTril;

    @Option(
        names = {"--packed-tril", "--packed-scale-tril"},
        paramLabel = "L.npy",
        description =
            "Or the same factors packed by rows, [N,D(D+1)/2], with logarithms on the diagonal.")
    @Nullable Path packedTril;

    @Option(
        names = {"--cov", "--covariance"},
        paramLabel = "C.npy",
        description = "Or its covariances, [N,D,D].")
    @Nullable Path covariance;

    @Option(
        names = "--cov-factor",
        paramLabel = "W.npy",
        description =
            "Beside variances, --cov-diag, or other scales of a diagonal, factors W, [N,D,r]: covariances are diag + W W^T.")
    @Nullable Path covFactor;

    @Option(
        names = "--precision-cholesky",
        paramLabel = "U.npy",
        description =
            "Or upper factors U of its precisions UU^T, [N,D,D]; the precision matrices themselves go to --precision.")
    @Nullable Path precisionCholesky;

    /** Returns the axis that q's moments and p's are halved along. */
    static int axis(CommandSpec command) {
      ParseResult given = command.commandLine().getParseResult();
      int axis = given.matchedOptionValue(AXIS, CHANNELS);
      if (given.hasMatchedOption(AXIS)
          && !given.hasMatchedOption("--moments")
          && !given.hasMatchedOption("--p-moments")) {
        throw new UserError(AXIS + " is for --moments: give that, or leave it out");
      }
      if (axis == 0) {
        throw new UserError(
            AXIS + " is 0, which counts the Gaussians: give 1 or more, or -1 for the last");
      }
      return axis;
    }

    /** Returns a file or none of each kind of scale that there is an option for, in the order of {@link #KINDS}. */
    private List<List<Path>> scales() {
      return Stream.of(
              std,
              variance,
              logVariance,
              precision,
              scaleTril,
              packedTril,
              covariance,
              precisionCholesky)
          .map(file -> Stream.ofNullable(file).toList())
          .toList();
    }

    /** Whether any scale is given. */
    public boolean hasScale() {
      return covFactor != null || scales().stream().anyMatch(scale -> !scale.isEmpty());
    }

    /** Whether means are given. */
    public boolean hasMean() {
      return mean != null;
    }

    /** Whether moments are given. */
    public boolean hasMoments() {
      return moments != null;
    }

    @Override
    public Files files() {
      List<Path> means = mean == null ? List.of() : List.of(mean);
      List<Path> both = moments == null ? List.of() : List.of(moments);
      List<Path> factors = covFactor == null ? List.of() : List.of(covFactor);
      return choose("--", means, scales(), both, factors, axis(command)).getFirst();
    }
  }

  /** The options of q, or of points in its place. */
  public static final class QOrPoints extends Q {
    @Option(
        names = "--points",
        order = MEAN,
        paramLabel = "X.npy",
        description =
            "In place of q points x, [N,D], by their squared Mahalanobis distances from p's Gaussians instead of KL.")
    @Nullable Path points;

    @Option(
        names = "--log-density",
        order = MEAN,
        description =
            "Of points, by the negative logarithms of p's densities there instead: the densest first.")
    boolean logDensity;

    @Override
    public Files files() {
      if (points == null) {
        if (logDensity) {
          throw new UserError("--log-density is of points: give --points X.npy");
        }
        return super.files();
      }
      if (hasMean() || hasScale() || hasMoments()) {
        throw new UserError("give --points or q, not both: points have no mean and no scale");
      }
      return Files.ofPoints(points);
    }

    public boolean isLogDensity() {
      return logDensity;
    }
  }

  /** The options of p. Each may name several files, one after the other or by being repeated, which topk alone takes. */
  public static final class P {
    private static final String SOME = "1..*";

    @Spec(Spec.Target.MIXEE)
    CommandSpec command;

    @Option(
        names = "--p-mean",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "P.npy",
        description =
            "Means of p, [M,D]. Without --p-... options p is q, but not in aligned, nor with points.")
    List<Path> means = List.of();

    @Option(
        names = "--p-std",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "T.npy",
        description = "Standard deviations of p.")
    List<Path> stds = List.of();

    @Option(
        names = {"--p-var", "--p-variance", "--p-cov-diag"},
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "V.npy",
        description = "Or its variances.")
    List<Path> variances = List.of();

    @Option(
        names = {"--p-logvar", "--p-log-variance"},
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "L.npy",
        description = "Or its log-variances.")
    List<Path> logVariances = List.of();

    @Option(
        names = "--p-precision",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "W.npy",
        description = "Or its 1/variances.")
    List<Path> precisions = List.of();

    @Option(
        names = "--p-scale-tril",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "L.npy",
        description = "Or lower factors of its covariances.")
    List<Path> scaleTrils = List.of();

    @Option(
        names = {"--p-packed-tril", "--p-packed-scale-tril"},
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "L.npy",
        description = "Or lower factors packed by rows.")
    List<Path> packedTrils = List.of();

    @Option(
        names = {"--p-cov", "--p-covariance"},
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "C.npy",
        description = "Or its covariances.")
    List<Path> covariances = List.of();

    @Option(
        names = "--p-precision-cholesky",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "U.npy",
        description = "Or upper factors of its precisions.")
    List<Path> precisionCholeskys = List.of();

    @Option(
        names = "--p-cov-factor",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "W.npy",
        description = "Beside scales of a diagonal, factors W of its W W^T.")
    List<Path> covFactors = List.of();

    @Option(
        names = "--p-moments",
        arity = SOME,
        hideParamSyntax = true,
        paramLabel = "E.npy",
        description = "Or, without --p-mean, moments, along the same --axis.")
    List<Path> moments = List.of();

    /** Returns the first mean with the first scale, and so on; nothing where p is q. */
    public List<Files> files() {
      List<List<Path>> scales =
          List.of(
              stds,
              variances,
              logVariances,
              precisions,
              scaleTrils,
              packedTrils,
              covariances,
              precisionCholeskys);
      Input.rejectOptions(command, means);
      Input.rejectOptions(command, moments);
      Input.rejectOptions(command, covFactors);
      scales.forEach(files -> Input.rejectOptions(command, files));
      boolean absent =
          Stream.concat(Stream.of(means, moments, covFactors), scales.stream())
              .allMatch(List::isEmpty);
      return absent
          ? List.of()
          : choose("--p-", means, scales, moments, covFactors, Q.axis(command));
    }

    /** Returns the files for a command that takes no more than one. */
    public List<Files> only() {
      List<Files> files = files();
      if (files.size() > 1) {
        throw new UserError(
            "%s names %d files: only topk takes more than one"
                .formatted(moments.isEmpty() ? "--p-mean" : "--p-moments", files.size()));
      }
      return files;
    }
  }

  /**
   * Pairs means with the one kind of scale that is given, or takes moments; {@code scales} has the first or all in the order of {@link
   * #KINDS}.
   */
  private static List<Files> choose(
      String prefix,
      List<Path> means,
      List<List<Path>> scales,
      List<Path> moments,
      List<Path> factors,
      int axis) {
    if (!factors.isEmpty() && moments.isEmpty() && scales.stream().allMatch(List::isEmpty)) {
      throw new UserError(
          "%scov-factor goes with the scales of a diagonal: give %1$scov-diag, too"
              .formatted(prefix));
    }
    List<Files> files = choose(prefix, means, scales, moments, axis);
    if (factors.isEmpty()) {
      return files;
    }
    if (files.getFirst().kind().isFull()) {
      throw new UserError(
          "%scov-factor goes with the scales of a diagonal: give %1$scov-diag in place of %s"
              .formatted(prefix, option(prefix, files.getFirst().kind())));
    }
    if (factors.size() != files.size()) {
      throw new UserError(
          "%smean names %d files but %1$scov-factor %d: they go in pairs"
              .formatted(prefix, files.size(), factors.size()));
    }
    return IntStream.range(0, files.size())
        .mapToObj(f -> files.get(f).with(factors.get(f)))
        .toList();
  }

  private static List<Files> choose(
      String prefix, List<Path> means, List<List<Path>> scales, List<Path> moments, int axis) {
    int[] given = IntStream.range(0, scales.size()).filter(i -> !scales.get(i).isEmpty()).toArray();
    if (!moments.isEmpty()) {
      if (!means.isEmpty() || given.length > 0) {
        throw new UserError(
            "%smoments names means and scales: give no %1$smean and no scale beside it"
                .formatted(prefix));
      }
      return moments.stream()
          .map(file -> new Files(prefix, file, ScaleKind.LOG_VARIANCE, file, axis, false, null))
          .toList();
    }
    if (means.isEmpty()) {
      throw new UserError(
          given.length == 0
              ? "give %smean and a scale, or %1$smoments".formatted(prefix)
              : "a scale needs its mean: give %smean, too".formatted(prefix));
    }
    if (given.length != 1) {
      String names =
          (given.length == 0 ? IntStream.range(0, scales.size()) : IntStream.of(given))
              .mapToObj(k -> option(prefix, KINDS.get(k)))
              .collect(Collectors.joining(", "));
      throw new UserError("give exactly one of " + names + " with " + prefix + "mean");
    }
    ScaleKind kind = KINDS.get(given[0]);
    List<Path> chosen = scales.get(given[0]);
    if (chosen.size() != means.size()) {
      throw new UserError(
          "%smean names %d files but %s %d: they go in pairs"
              .formatted(prefix, means.size(), option(prefix, kind), chosen.size()));
    }
    return IntStream.range(0, means.size())
        .mapToObj(f -> pair(prefix, means.get(f), kind, chosen.get(f)))
        .toList();
  }

  private static Files pair(String prefix, Path mean, ScaleKind kind, Path scale) {
    // other kinds are > 0 throughout, which means hardly are
    if (kind == ScaleKind.LOG_VARIANCE && Input.isSame(mean, scale)) {
      throw new UserError(
          mean,
          "is given both as %smean and as %s: if one array holds means and log-variances, as encoders write them, give it as %1$smoments"
              .formatted(prefix, option(prefix, kind)));
    }
    return new Files(prefix, mean, kind, scale, 0, false, null);
  }
}
