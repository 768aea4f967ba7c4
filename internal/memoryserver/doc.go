// Package memoryserver is a Kubernetes API server in memory, for tests that run an operator
// thousands of times.
//
// It is small and has no etcd, but answers as the real server does where a client could tell:
// creation, update, all patches, server-side apply, status and scale, deletion, watches, with the
// reasons, codes and words of the real errors. It uses the real server's own libraries for field
// managers, for custom resource schemas with their defaults and rules in CEL, for patches and for
// metadata. Defaults and validation of the built-in kinds are written by hand. TestConformance sends
// random requests to both servers and compares answers and objects.
//
// What is particular to it:
//   - The store keeps every version of every object, so that [Server.Reader] can show what a cache
//     that is behind would show, and [Server.Changes] what happened.
//   - One process, one write after the other: each request is done when the client's call returns.
//     There is no goroutine but one for each open watch.
//   - UIDs, generated names, addresses and resource versions come in order, so that a run can be
//     repeated. Times are time.Now, which testing/synctest controls.
//   - No controller runs. [Server.CollectGarbage] does the work of the garbage collector and of the
//     namespace controller when it is called.
//
// # Known differences from the real server
//
//   - Authentication, authorization, quotas, limit ranges, priority classes and webhooks: there are
//     none. Pods do not get the volume with their service account's token.
//   - Kinds: those of the table in builtin_kinds.go, each in one version; a custom resource
//     definition's versions are stored apart, and nothing is converted between them. Custom resource
//     definitions are given to [New] and are no objects. Events are two kinds that do not show each
//     other's objects.
//   - Validation of pod templates and other deep specs covers the mistakes that operators make, not
//     all. Where the real server prints a value, it prints its own Go types, and sometimes a
//     difference.
//   - Errors that name several fields name them in any order, here and there.
//   - Unknown fields are an error under strict validation, else they are dropped without a warning.
//   - Lists ignore limit and continue: all is one page. Field selectors know metadata.name and
//     metadata.namespace.
//   - Service addresses and node ports are the lowest that are free, all IPv4. The real server picks
//     them at random.
//   - An eviction does not ask the pod's disruption budget. Of the other subresources there are
//     status and scale.
//   - Nothing expires: events stay, and a watch can begin at any revision.
package memoryserver
