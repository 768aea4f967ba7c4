// Package compare serialises the objects that a client wants to exist, and compares them with the live ones.
//
// A [Comparer] does both for the objects of one kind, typed or unstructured. [AppendValue] serialises and [Equal] compares
// values that are not objects.
//
// # How it works
//
// One walk (comparison.go) goes down the wanted and the live object in step, by reflection: two Go values of one type, or
// two trees. A tree is decoded JSON: maps, lists and scalars. The walk stops at the first difference. To collect all
// differences with their paths, it is done again.
//
// To be sent, the wanted object becomes a tree with all that is sent and nothing else (tree.go), which encoding/json
// writes. The tree and the walk take what is set from the same description of a Go type (gotype.go). The fuzz tests check
// that a change of anything that is sent is a difference.
//
// # What is sent
//
// All that the object sets, except
//
//   - what the API server owns: status, uid, resourceVersion and others;
//   - nulls, except in raw JSON;
//   - `{}` of a struct field that is not a pointer;
//   - a quantity or an IntOrString of 0 in a field with omitempty, which encoding/json writes: targetPort.
//
// Zeros are kept where the field's JSON tag keeps them: `size: 0` without omitempty, pointers to zero, and `{}` as a
// list item, as the value of a map or behind a pointer. Fields are sorted by name. So the bytes, and a hash of them,
// stay the same when a field changes its place in the Go struct.
//
// An unstructured object is sent without the fields that the API server owns, and without nulls. Its zeros are sent:
// without a Go type, a zero never stands for an unset field. In custom resources null and unset may differ, so the null
// of a nullable field and a null without a schema are sent. The API server drops any other null from a POST, and
// refuses it in an apply. If it is not known which fields are nullable, all nulls are sent, and not compared.
//
// # What is compared
//
// A live object covers a wanted one if it has every value that would be sent. What others added is not a difference:
// defaults, injected containers, foreign annotations. Lists and maps are compared by the rules of server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy), which are taken from the API's
// own schema (package applyschema) and not from struct tags:
//
//   - In a list with keys, the wanted items are found by their keys, in the wanted order. Other items are ignored.
//   - A set has the wanted values among its own.
//   - An atomic list has the same length, and each item covers the wanted one. (The API server sets defaults in items.)
//   - A map has the wanted keys. An atomic map has exactly the wanted keys.
//   - A label selector has exactly the wanted fields, so that an empty one keeps selecting everything.
//
// Null and absent differ if nulls are sent. A map with keys of others covers a null, since server-side apply merges the two.
//
// Numbers, quantities, and raw JSON are compared by value. An explicit zero of an unstructured object that the API server
// stores as absent is not a difference.
//
// A type without a schema is compared as the fields of a custom resource are by default: lists are atomic, maps are not.
//
// # Hashes
//
// Clusters store hashes of what was sent. So the bytes must not change with a release of this module or of Go: the escapes
// and the form of floats stay as in the first release (tree.go).
package compare
