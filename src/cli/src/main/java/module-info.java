/** The command line, on the public API of the library. */
module dev.kullback.cli {
  requires com.google.gson;
  requires dev.kullback;
  requires info.picocli;
  requires java.desktop;
  requires java.logging;
  requires me.tongfei.progressbar;
  requires static org.jspecify;

  opens dev.kullback.cli to
      info.picocli;
  opens dev.kullback.cli.batch to
      info.picocli;
  opens dev.kullback.cli.command to
      info.picocli;
  opens dev.kullback.cli.terminal to
      info.picocli;
}
