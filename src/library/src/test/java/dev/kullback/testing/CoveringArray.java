package dev.kullback.testing;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;

/** Rows of choices, one from each list, in which every two choices that go together stand somewhere: the first rows have the most pairs. */
public final class CoveringArray {
  /** Random rows, of which the first that goes together is improved. */
  private static final int TRIES = 2000;

  /** Rows that are improved, of which the best is taken. */
  private static final int STARTS = 4;

  private final List<? extends List<?>> lists;
  private final Predicate<List<Object>> isAllowed;
  private final Random random = new Random(1);

  /** Numbers of each list's first choice. */
  private final int[] first;

  private final int choices;

  /** Pairs of numbers of choices, the lower before, that no row has yet. */
  private final BitSet left = new BitSet();

  private CoveringArray(List<? extends List<?>> lists, Predicate<List<Object>> isAllowed) {
    this.lists = lists;
    this.isAllowed = isAllowed;
    first = new int[lists.size()];
    int at = 0;
    for (int k = 0; k < first.length; at += lists.get(k++).size()) {
      first[k] = at;
    }
    choices = at;
    for (int b = 0; b < first.length; b++) {
      for (int x = 0; x < first[b]; x++) {
        for (int y = first[b]; y < first[b] + lists.get(b).size(); y++) {
          left.set(x * choices + y);
        }
      }
    }
  }

  /**
   * Returns the rows.
   *
   * @param isAllowed whether a row's choices go together
   */
  public static List<List<Object>> of(
      List<? extends List<?>> lists, Predicate<List<Object>> isAllowed) {
    return new CoveringArray(lists, isAllowed).rows();
  }

  private List<List<Object>> rows() {
    List<List<Object>> rows = new ArrayList<>();
    for (int pair = left.nextSetBit(0); pair >= 0; pair = left.nextSetBit(0)) {
      int[] best = {};
      for (int start = 0; start < STARTS; start++) {
        int[] row = improved(allowed(pair));
        best = best.length == 0 || (row.length > 0 && news(row) > news(best)) ? row : best;
      }
      left.clear(pair);
      if (best.length > 0) {
        rows.add(choices(best));
        for (int b = 0; b < best.length; b++) {
          for (int a = 0; a < b; a++) {
            left.clear(pair(best, a, b));
          }
        }
      }
    }
    return rows;
  }

  /** Returns a row with a pair, or an empty one if none was found. */
  private int[] allowed(int pair) {
    for (int t = 0; t < TRIES; t++) {
      int[] row = new int[first.length];
      for (int k = 0; k < row.length; k++) {
        row[k] = random.nextInt(lists.get(k).size());
        for (int choice : new int[] {pair / choices, pair % choices}) {
          boolean isOfList = choice >= first[k] && choice < first[k] + lists.get(k).size();
          row[k] = isOfList ? choice - first[k] : row[k];
        }
      }
      if (isAllowed.test(choices(row))) {
        return row;
      }
    }
    return new int[0];
  }

  /** Changes one choice after the other, as long as that adds new pairs. */
  private int[] improved(int[] row) {
    int most = news(row);
    for (int k = 0, last = 0; k < row.length + last; k++) {
      int at = k % row.length;
      int kept = row[at];
      for (int choice = 0; choice < lists.get(at).size(); choice++) {
        int before = row[at];
        row[at] = choice;
        if (news(row) > most && isAllowed.test(choices(row))) {
          most = news(row);
        } else {
          row[at] = before;
        }
      }
      last = row[at] == kept ? last : k; // once more round
    }
    return row;
  }

  private int news(int[] row) {
    int news = 0;
    for (int b = 0; b < row.length; b++) {
      for (int a = 0; a < b; a++) {
        news += left.get(pair(row, a, b)) ? 1 : 0;
      }
    }
    return news;
  }

  private int pair(int[] row, int a, int b) {
    return (first[a] + row[a]) * choices + first[b] + row[b];
  }

  private List<Object> choices(int[] row) {
    List<Object> choices = new ArrayList<>();
    for (int k = 0; k < row.length; k++) {
      choices.add(lists.get(k).get(row[k]));
    }
    return choices;
  }
}
