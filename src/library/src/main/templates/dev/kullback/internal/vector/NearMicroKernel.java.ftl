<#-- Four rows by one vector of columns, to spread the column loads, which cross cache lines; two rows ran at 60 % of this. -->
package dev.kullback.internal.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/** Unrolled loop of {@link NearKernel}, layouts as there. */
final class NearMicroKernel {
  private static final VectorSpecies<Float> S = Species.FLOAT;
  private static final int V = S.length();

  private NearMicroKernel() {}

  /**
   * Stores 2 KL of rows i0 to i3 of a tile, whose first begins at {@code first}, and of the vector of columns at {@code j}, over
   * {@code length} dimensions, to {@code acc[i·NR + to]}.
   */
  static void tile4x1(
      float[] mean,
      float[] scale,
      float[] weight,
      int first,
      int d,
<#list 0..3 as i>
      int i${i},
</#list>
      float[] columns,
      int j,
      int length,
      float[] acc,
      int to) {
<#list 0..3 as i>
    int k${i} = first + i${i} * d;
    FloatVector a${i} = FloatVector.zero(S);
</#list>
    for (int h = 0; h < length; h++) {
      int k = j + h * (NearKernel.FIELDS * V);
      FloatVector m = FloatVector.fromArray(S, columns, k);
      FloatVector r = FloatVector.fromArray(S, columns, k + V);
      FloatVector s = FloatVector.fromArray(S, columns, k + 2 * V);
      FloatVector w = FloatVector.fromArray(S, columns, k + 3 * V);
      FloatVector x, z;
<#list 0..3 as i>
      x = FloatVector.broadcast(S, mean[k${i} + h]).sub(m);
      z = FloatVector.broadcast(S, scale[k${i} + h]).sub(s).mul(w);
      z = z.mul(FloatVector.broadcast(S, weight[k${i} + h]));
      a${i} = a${i}.add(z.fma(z, x.mul(r).mul(x)));
</#list>
    }
<#list 0..3 as i>
    a${i}.intoArray(acc, i${i} * FloatPanels.NR + to);
</#list>
  }
}
