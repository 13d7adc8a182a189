/** Kullback–Leibler divergences between batches of Gaussians. */
module dev.kullback {
  requires static jdk.incubator.vector;
  requires static jdk.jfr;
  requires static jdk.management;
  requires static org.jspecify;

  exports dev.kullback;
}
