// Package owned has the types that all packages of the engine use: the [Owner], the [Kind] of an object, an object as it is [Declared] and
// as it is [Desired], the [Options] and the [Binding] of a child, and the errors.
//
// The engine is the code that applies the objects of an owner. Package ownedresources is its public API. The types of the engine have no
// type parameters. One reconcile of an owner goes through them from top to bottom:
//
//	set         reads the inputs, builds the children, applies them in their order, prunes the others, and watches them
//	apply       brings one object to its desired state: reads the live object, asks plan what to do, and remembers what was written
//	write       sends all requests that write: create, apply, patch, delete; take over the fields of others, remove fields
//	plan        decides what is done next, and what is sent; it sends nothing
//	feature     decides for Generate, RunOnce and ExpandVolumes; it sends nothing
//	memory      what is remembered of children by their UIDs and names
//	childindex  which objects were written for which owner
//	report      metrics, events and log entries about what was done
//	owned       this package
//
// Each package imports only packages below it. Package internal/ownwrites remembers the writes of this process that the cache does not show
// yet. Package internal/record has the formats of what is stored in the cluster.
package owned
