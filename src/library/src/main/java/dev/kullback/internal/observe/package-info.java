/**
 * What an operator sees: events of JDK Flight Recorder, and counters. It uses nothing but the JDK, and of the module {@code jdk.jfr}, which
 * may be missing, alone. Start with {@link dev.kullback.internal.observe.Events}.
 */
@NullMarked
package dev.kullback.internal.observe;

import org.jspecify.annotations.NullMarked;
