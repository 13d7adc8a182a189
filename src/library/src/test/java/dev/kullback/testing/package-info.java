/** Inputs, oracles, comparisons and virtual machines that the tests share; no class here is a test. */
package dev.kullback.testing;
