/** Needs Kullback, which brings its module with it. */
module example {
  requires dev.kullback;
}
