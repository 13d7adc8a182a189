package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.index.store.Form;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.Source;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The divergences of one query from references, which are read as they were given. A place holds the segment's number in its high 32 bits
 * and the row in its low 32.
 */
final class References extends Source {
  private final Searcher searcher;
  private final Formula formula;
  final Pair pair;

  /** Slots of each form and precision. */
  private final List<Slots> slots = new ArrayList<>();

  private Snapshot snapshot = Snapshot.EMPTY;
  private DoubleBounds sums;

  /** Least Σ ln σ of the references, where that of points counts. */
  private double least;

  /** Whether {@link #sums} bounds the divergences that are asked for. */
  private boolean hasSums;

  /** What {@link #touch} read; kept so that no compiler leaves out reading it. */
  int lastTouched;

  /** Bytes that were read in this call. */
  long bytesRead;

  /** Two references of one form and precision: the one that was read last, and the one before, to be compared with it. */
  private static final class Slots {
    static final long NONE = -1;

    final Form form;
    final Batch[] batches = new Batch[2];
    final long[] places = {NONE, NONE};
    int last;

    Slots(Segment like, boolean takesZero) {
      form = like.form();
      Arrays.setAll(batches, s -> like.newSlot(takesZero));
    }

    boolean fit(Segment segment) {
      return form == segment.form() && batches[0].isDouble() == segment.isDouble();
    }
  }

  References(Searcher searcher, Formula formula) {
    this(searcher, formula, new Pair(formula, searcher));
  }

  private References(Searcher searcher, Formula formula, Pair pair) {
    super(pair);
    this.searcher = searcher;
    this.formula = formula;
    this.pair = pair;
    sums = new DoubleBounds(new Bounds(formula));
  }

  /** Returns the least Σ ln σ of all references where that counts; else 0. */
  static double least(Formula formula, Snapshot from) {
    return isExcess(formula) ? from.leastLogDet() : 0;
  }

  private static boolean isExcess(Formula formula) {
    return formula == Density.EXCESS;
  }

  /** Returns that of {@link #use}. */
  double least() {
    return least;
  }

  /** Reads references of a snapshot from now on. */
  void use(Snapshot from, boolean reverse) {
    snapshot = from;
    least = least(formula, from);
    hasSums = formula.kernels().forward() instanceof Kl && !formula.isExchanged(reverse);
    turn(reverse);
    for (int k = 0; k < slots.size(); k++) { // an iterator would be allocated
      Arrays.fill(slots.get(k).places, Slots.NONE);
    }
  }

  /** Asks for the divergences of a query from now on. */
  References of(Query query) {
    ask(query.batch(), query.row, query.batch());
    sums = query.sums;
    return this;
  }

  @Override
  public void clear() {
    super.clear();
    pair.clear();
    use(Snapshot.EMPTY, false);
    bytesRead = 0;
  }

  @Override
  protected Batch batch(long place) {
    Segment segment = segment(place);
    Slots two = slots(segment);
    if (two.places[two.last] != place) {
      two.last = 1 - two.last;
    }
    Batch batch = two.batches[two.last];
    if (two.places[two.last] != place) {
      searcher.checkInterrupt();
      segment.fill(batch, (int) place);
      bytesRead += segment.rowBytes();
      two.places[two.last] = place;
    }
    return batch;
  }

  @Override
  protected void touch(long[] places, int from, int to) {
    for (int s = from; s < to; s++) {
      lastTouched ^= segment(places[s]).touch((int) places[s]);
    }
  }

  @Override
  protected int row(long place) {
    return 0;
  }

  @Override
  protected boolean isSame(long place, long other) {
    return slots(segment(place)) == slots(segment(other))
        && batch(place) instanceof DiagonalBatch one
        && batch(other) instanceof DiagonalBatch two
        && one.isEqual(0, two, 0);
  }

  /** {@inheritDoc} An excess is that over the least of all references, not of a slot. */
  @Override
  protected double offset(long place) {
    return isExcess(formula) ? segment(place).logDet((int) place) - least : 0;
  }

  /** Returns the same of divergences that count from the least of a batch. */
  double offset(Batch batch) {
    return isExcess(formula) ? batch.logDet(batch.narrowest()) - least : 0;
  }

  @Override
  protected long id(long place) {
    return segment(place).id((int) place);
  }

  /** {@inheritDoc} {@link DoubleBounds} gives the first ones, if it can. */
  @Override
  protected void bound(long place, boolean isFirst) {
    if (isFirst && hasSums && batch(place) instanceof DiagonalBatch p && sums.of(p)) {
      lower = sums.lower;
      upper = sums.upper;
    } else {
      super.bound(place, isFirst);
    }
  }

  @Override
  protected boolean isTimed() {
    return searcher.isTimed();
  }

  @Override
  protected boolean isOver() {
    return searcher.isOver();
  }

  @Override
  protected boolean isAtEnd() {
    return searcher.isAtEnd();
  }

  private Segment segment(long place) {
    return snapshot.segment(place);
  }

  private Slots slots(Segment segment) {
    for (int k = 0; k < slots.size(); k++) { // an iterator would be allocated
      if (slots.get(k).fit(segment)) {
        return slots.get(k);
      }
    }
    Slots made = new Slots(segment, !formula.needsInverse());
    slots.add(made);
    return made;
  }
}
