// Package kind describes one kind of object to the server in memory: its names, which subresources it has, who
// owns which field, and its [Strategy], which decodes, defaults and validates objects.
//
// Packages builtin and crd make kinds. Package memoryserver serves them.
package kind
