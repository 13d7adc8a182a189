import dev.kullback.Backend;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;

/** Prints the median microseconds of the KL matrix (1024,128) on one thread of the CPU: arrays in, array out. */
class CpuTime {
  private static final int B = 1024;
  private static final int H = 128;
  private static final int WARM = 200;
  private static final int CALLS = 501;

  public static void main(String[] args) {
    Random random = new Random(42);
    float[] mean = new float[B * H];
    float[] std = new float[B * H];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = (float) (0.5 * Math.exp(0.5 * random.nextGaussian()));
    }
    float[] out = new float[B * B];
    double[] seconds = new double[CALLS];
    try (KlEngine engine = KlEngine.builder().backend(Backend.VECTOR).build()) {
      for (int call = -WARM; call < CALLS; call++) {
        long start = System.nanoTime();
        DiagonalGaussians q = DiagonalGaussians.ofStd(mean, std, H);
        engine.pairwise(q, q, out);
        seconds[Math.max(call, 0)] = (System.nanoTime() - start) * 1e-9;
      }
    }
    Arrays.sort(seconds);
    System.out.printf(Locale.ROOT, "%.1f%n", seconds[CALLS / 2] * 1e6);
  }
}
