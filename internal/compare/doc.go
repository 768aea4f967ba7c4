// Package compare serialises the objects that a client wants to exist, and compares them with the live ones.
//
// [Typed] does both for the objects of one Go type, and [Untyped] for the unstructured objects of one kind. In each, the
// same code decides what is sent and what is compared, so the two cannot differ. [AppendValue] serialises and [Value]
// compares values that are no objects.
//
// # What is sent
//
// All that the object sets, except
//
//   - what the API server owns: status, uid, resourceVersion and others;
//   - nulls;
//   - `{}` of a struct field that is not a pointer.
//
// Zeros are kept where the field's JSON tag keeps them: `size: 0` without omitempty, pointers to zero, and `{}` as a
// list item, as the value of a map or behind a pointer. Fields are sorted by name. So the bytes, and a hash of them,
// stay the same when a field changes its place in the Go struct.
//
// # What is compared
//
// A live object covers a wanted one if it has every value that would be sent. What others added is no difference:
// defaults, injected containers, foreign annotations. Lists and maps are compared by the rules of server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy), which are taken from the API's
// own schema and not from struct tags:
//
//   - In a list with keys, the wanted items are found by their keys, in the wanted order. Other items are ignored.
//   - A set has the wanted values among its own.
//   - An atomic list has the same length, and each item covers the wanted one. (The API server sets defaults in items.)
//   - A map has the wanted keys. An atomic map has exactly the wanted keys.
//   - A label selector has exactly the wanted fields, so that an empty one keeps selecting everything.
//
// A type without a schema is compared as the fields of a custom resource are by default: lists are atomic, maps are not.
//
// # Speed
//
// Typed reads fields through unsafe pointers. Reflection computes their offsets once per type. Comparing a Deployment
// takes less than a microsecond and allocates nothing. The type of an object is checked once, before the first unsafe
// pointer.
package compare
