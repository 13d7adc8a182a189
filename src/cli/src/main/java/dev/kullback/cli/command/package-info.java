/**
 * The commands, a class for each; they may use all other packages. Start with {@link dev.kullback.cli.command.Commands}, the list of
 * them.
 */
@NullMarked
package dev.kullback.cli.command;

import org.jspecify.annotations.NullMarked;
