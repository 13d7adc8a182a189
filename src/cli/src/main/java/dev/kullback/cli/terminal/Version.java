package dev.kullback.cli.terminal;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.IVersionProvider;

/** The version of the command line, from its manifest or its module. */
public final class Version implements IVersionProvider {
  /** Returns the version's number. */
  public static String number() {
    @Nullable String version = Version.class.getPackage().getImplementationVersion();
    if (version == null && Version.class.getModule().getDescriptor() != null) {
      version = Version.class.getModule().getDescriptor().rawVersion().orElse(null);
    }
    return version == null ? "unreleased" : version;
  }

  /** Returns the text of {@code --version}. */
  public static String line() {
    return "kullback ".concat(number()); // what + compiles to would take a tenth of the whole run
  }

  @Override
  public String[] getVersion() {
    return new String[] {line()};
  }
}
