/**
 * The user's side of a run: the two streams, summaries as text or JSON, progress, errors of one line. It uses no other package. Start
 * with {@link dev.kullback.cli.terminal.Terminal}.
 */
@NullMarked
package dev.kullback.cli.terminal;

import org.jspecify.annotations.NullMarked;
