// Package memory holds what the process remembers of children, by their UIDs and names. The memory saves requests and comparisons. It may
// be empty, as it is after a restart.
package memory
