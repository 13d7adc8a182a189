/**
 * Threads: the tasks of a call and who does them, where long work ends when its caller is interrupted, and where it lets other virtual
 * threads run. It knows nothing of divergences, and uses nothing but
 * the JDK and, for the exception of a timeout, {@code api}. Start with {@link dev.kullback.internal.work.Crew}.
 */
@NullMarked
package dev.kullback.internal.work;

import org.jspecify.annotations.NullMarked;
