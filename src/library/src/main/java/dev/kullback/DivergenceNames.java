package dev.kullback;

import java.text.Normalizer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Finds the divergence that is meant by a name that {@link Divergence#of} does not know. */
final class DivergenceNames {
  /** Letters that a name must share with one of a divergence to be taken for a way to write it. */
  private static final int BEGINNING = 3;

  /** What to say of a name with one of these beginnings, of letters and digits alone; the first that fits counts. */
  private static final Map<String, String> OTHERS = new LinkedHashMap<>();

  static {
    say("did you mean jeffreys, the sum of KL in both directions?", "klsym", "symm", "skl", "jdiv");
    say("did you mean kl, or reverse-kl for KL(p||q)?", "kl", "kullback", "relativeent");
    say("did you mean kl?", "forward");
    say("did you mean reverse-kl?", "rkl", "inverse", "backward");
    say(
        "the Jensen-Shannon divergence has no closed form for Gaussians; jeffreys and hellinger are symmetric, too",
        "js",
        "jens");
    say(
        "the Wasserstein distances here are wasserstein-2 and its square, squared-wasserstein-2",
        "wasserstein1",
        "w1",
        "earth",
        "emd");
    say(
        "did you mean wasserstein-2, or its square, squared-wasserstein-2?",
        "w2",
        "wass",
        "bures",
        "gelbrich");
    say(
        "did you mean squared-wasserstein-2, which FID calls the Frechet distance, or its root, wasserstein-2?",
        "frech",
        "fid");
    say("did you mean bhattacharyya?", "bat");
    say("did you mean hellinger, whose square that is?", "squaredh", "h2");
    say("renyi needs its order ALPHA, as in renyi:0.5", "ren");
    say("chernoff needs its order ALPHA, as in chernoff:0.5", "cher");
    say("of the alpha divergences there are renyi:ALPHA and chernoff:ALPHA", "alpha");
    say(
        "between Gaussians with the same covariance, kl is half the squared Mahalanobis distance",
        "mahal");
    say(
        "the maximum mean discrepancy depends on a kernel; hellinger and wasserstein-2 are distances, too",
        "mmd",
        "maximummean");
    say("total variation has no closed form for Gaussians; hellinger bounds it", "tv", "total");
  }

  private DivergenceNames() {}

  private static void say(String advice, String... beginnings) {
    for (String beginning : beginnings) {
      OTHERS.put(beginning, advice);
    }
  }

  /** Returns the advice; empty where nothing is known of the name. */
  static String advice(String name) {
    String letters =
        Normalizer.normalize(name, Normalizer.Form.NFD)
            .toLowerCase(Locale.ROOT)
            .replaceAll("[^a-z0-9]", "");
    for (Map.Entry<String, String> other : OTHERS.entrySet()) {
      if (letters.startsWith(other.getKey())) {
        return other.getValue();
      }
    }
    List<String> near = new ArrayList<>();
    for (Divergence divergence : Divergence.NAMED) {
      String plain = divergence.name().replace("-", "");
      if (letters.length() >= BEGINNING
          && plain.length() >= BEGINNING
          && plain.startsWith(letters.substring(0, BEGINNING))) {
        near.add(divergence.name());
      }
    }
    return near.size() == 1 ? "did you mean %s?".formatted(near.getFirst()) : "";
  }
}
