// Package owned holds the nouns of the engine that applies the objects of an owner: the [Owner], the [Kind] of an object, an
// object as it is [Declared] and [Desired], the [Options] and the [Binding] of a child, and the errors.
//
// The engine is the inside of package ownedresources, without type parameters. What happens in one reconcile of an owner can be
// read from top to bottom:
//
//	set         reads the inputs, builds the children, applies them in their order, prunes the others, and watches them
//	apply       reads the live object, follows the plan, and remembers what was written
//	write       sends all requests that write: create, apply, patch, delete; take over the fields of others, remove fields
//	plan        decides what is done next, and what is sent; it sends nothing
//	feature     decides for Generate, RunOnce and ExpandVolumes; it sends nothing
//	memory      what is remembered of children by their UIDs and names
//	childindex  which objects were written for which owner
//	report      metrics, events and log entries about what was done
//	owned       this package
//
// Each package imports only packages below it. What opblocks has written itself, and the cache does not show yet, is in package
// internal/ownwrites. Package internal/record has the formats of what is stored in the cluster.
package owned
