// Package memory holds what is remembered of children by their UIDs and names. It saves requests and comparisons, and nothing
// is wrong if it is empty.
package memory
