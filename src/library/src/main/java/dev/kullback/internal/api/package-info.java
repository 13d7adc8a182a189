/**
 * Constructors of the API's values that are not public, for the rooms that make such values. It uses nothing but these values. Start with
 * {@link dev.kullback.internal.api.Constructors}.
 */
@NullMarked
package dev.kullback.internal.api;

import org.jspecify.annotations.NullMarked;
