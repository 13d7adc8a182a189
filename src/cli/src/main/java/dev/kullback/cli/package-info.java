/**
 * The command line's entry: it parses arguments, runs a command and turns errors into exit statuses. The command line uses only the public
 * API of {@code dev.kullback}; every class here and in the packages below may change. Start with {@link dev.kullback.cli.Main}.
 */
@NullMarked
package dev.kullback.cli;

import org.jspecify.annotations.NullMarked;
