// Package memoryserver is a Kubernetes API server in memory, for tests that run an operator thousands of times.
//
// It is small and has no etcd, but answers as the real server does: creation, update, all patches, server-side apply, the subresources
// status and scale, deletion and watches, with the reasons, codes and messages of the real errors. It uses the real server's own libraries
// for field managers, for the schemas of custom resources with their defaults and CEL rules, for patches and for metadata. Defaults and
// validation of the built-in kinds are written by hand. TestConformance sends random requests to both servers and compares answers and
// objects.
//
// Package kind describes a kind to the server, package builtin has the built-in kinds, and package crd makes kinds of
// custom resource definitions.
//
// These properties are particular to this server:
//   - The store keeps every version of every object. So [Server.Reader] can read what an old cache would return, and [Server.Changes]
//     returns what happened.
//   - Writes are serialised. A request is done when the client's call returns. Only open watches have goroutines.
//   - UIDs, generated names, addresses and node ports depend on an object's kind and name, and resource versions on the order of the
//     writes, so a run can be repeated. Times come from time.Now, which testing/synctest controls.
//   - No controller runs. [Server.CollectGarbage] does the work of the garbage collector and of the namespace controller
//     when it is called.
//
// # Known differences from the real server
//
//   - The server has no authentication, authorization, quota, limit range or priority class. Pods do not get
//     the volume with the token of their service account.
//   - It serves the kinds in the table in builtin/kinds.go, each in one version. Custom resource definitions are options of
//     [New], and not objects, and have no status with storedVersions. The two kinds Event do not show each other's objects.
//   - Webhooks see one user for all requests. None is called for the subresources scale and eviction. matchConditions are refused.
//   - A conversion webhook gets one object at a time, and its answers are kept. The real server asks again for most reads.
//   - Validation of pod templates and other deep specs finds the mistakes that operators usually make, and not all. Where the real
//     server prints a value, it prints its own Go types, and sometimes a diff.
//   - Errors that name several fields sometimes name them in another order.
//   - Unknown fields are an error under strict validation. Otherwise they are dropped without a warning.
//   - Lists ignore limit and continue: they have one page. Field selectors support metadata.name, metadata.namespace, the
//     selectable fields of custom resource definitions, and the most common ones of built-in kinds.
//   - Service addresses and node ports depend on the service's name, and all addresses are IPv4. The real server picks them
//     at random.
//   - An eviction ignores the pod's disruption budget. The only other subresources are status and scale.
//   - Nothing expires: events stay, and a watch can begin at any revision.
package memoryserver
