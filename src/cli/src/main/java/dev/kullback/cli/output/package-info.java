/**
 * Outputs: checks of their names, files that appear whole or not at all, and what a summary says of the values. It may use npy and
 * terminal. Start with {@link dev.kullback.cli.output.OutputFile}.
 */
@NullMarked
package dev.kullback.cli.output;

import org.jspecify.annotations.NullMarked;
