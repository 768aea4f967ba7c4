// Package kind describes one kind of object to the server in memory. A [Kind] has the names, the subresources and the field managers. Its
// [Strategy] decodes, defaults and validates objects.
//
// Packages builtin and crd make kinds. Package memoryserver serves them.
package kind
