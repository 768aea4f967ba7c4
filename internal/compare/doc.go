// Package compare turns a Go type of the Kubernetes API into one compiled plan that
// both serialises an object and compares it with the live one. As the same plan
// does both, what is sent and what is compared cannot differ.
//
// # What is sent
//
// Everything the object says, less what the API server owns (status, uid,
// resourceVersion, …), nulls, and `{}` of a struct field that is no pointer.
// Zeros are kept where the field's JSON tag keeps them: `size: 0` without
// omitempty, pointers to zero, `{}` as list element, map value or behind a
// pointer. Fields come sorted by name, so the bytes, and a hash of them, do not
// move when a field changes its place in the Go struct.
//
// # What is compared
//
// A live object covers a wanted one when every value that would be sent is there.
// What others added is no difference: defaults, injected containers, foreign
// annotations. Lists and maps are read by the rules of server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy),
// taken from the API's own schema and not from struct tags:
//
//   - lists with keys: our items are found by key, in our order; others are ignored
//   - sets: our values are among the live ones
//   - atomic lists: the same length, covered item by item (items get defaults too)
//   - maps: our keys; atomic maps have exactly our keys
//   - label selectors: exactly our fields, so that an empty one keeps selecting all
//
// A type without schema is read as a custom resource's would be by default: lists
// are atomic, maps are not.
//
// The plan reads fields through unsafe pointers at offsets that reflection gave
// once per type: comparing a Deployment takes well under a microsecond and no
// allocation. Types are checked once, when a plan is chosen.
package compare
