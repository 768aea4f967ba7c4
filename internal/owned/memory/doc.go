// Package memory holds what is remembered of children by their UIDs and names. The memory saves requests and comparisons. It
// may be empty, as after a restart.
package memory
