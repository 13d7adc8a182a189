/**
 * The agreement between those who compute blocks of the matrix and those who take them: a call's operands, a kernel's interface, where
 * results go, how rows of a block are gone through, and what a kernel is asked that goes through rows itself. It may use batch and work. Start with
 * {@link dev.kullback.internal.kernel.BlockKernel}.
 */
@NullMarked
package dev.kullback.internal.kernel;

import org.jspecify.annotations.NullMarked;
