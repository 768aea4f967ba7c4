// Package compare encodes the objects that a client wants to exist as JSON, and compares them with the live objects.
//
// A [Comparer] does both for the objects of one kind, typed or unstructured. For values that are not objects, [AppendValue] encodes and
// [Equal] compares.
//
// # How it works
//
// One walk (comparison.go) goes through the wanted and the live object in step, by reflection. Both are Go values of one type, or both are
// trees: decoded JSON of maps, lists and scalars. The walk stops at the first difference. If all differences and their paths are needed,
// there is a second walk.
//
// To send the wanted object, it is converted to a tree that contains only what is sent (tree.go). encoding/json then writes the tree. The
// conversion and the walk use the same description of a Go type (gotype.go), so they agree on which fields are set. The fuzz tests check
// that a change of any value that is sent is a difference.
//
// # What is sent
//
// All that the object sets, except
//
//   - fields that the API server sets: status, uid, resourceVersion and others;
//   - nulls, except in raw JSON;
//   - an empty struct (`{}`) in a field that is not a pointer;
//   - a quantity or an IntOrString of 0 in a field with omitempty, such as targetPort, although encoding/json writes it.
//
// Other zeros are sent if encoding/json writes them: `size: 0` without omitempty, pointers to zero, and `{}` as a list item, as the
// value of a map or behind a pointer. Fields are sorted by name. So if a field moves inside of the Go struct, the JSON and its hash stay
// the same.
//
// An unstructured object is sent without the fields that the API server sets, and without nulls. Its zeros are sent: without a Go type, a
// zero never stands for an unset field. In custom resources null and unset may differ. So a null is sent if the field is nullable, or if it
// has no schema. The API server drops any other null from a POST, and refuses it in an apply. If it is not known which fields are nullable,
// all nulls are sent, and nulls are not compared.
//
// # What is compared
//
// A live object covers a wanted one if it has every value that would be sent. What others have added is not a difference: defaults,
// injected containers, other annotations. Lists and maps are compared by the rules of server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy), which come from the API's own schema (package
// applyschema) and not from struct tags:
//
//   - In a list with keys, the live list must have items with the keys of the wanted items, in the wanted order. Other items are ignored.
//   - In a set, the live set must contain the wanted values.
//   - An atomic list must have the same length, and each live item must cover the wanted one. (The API server sets defaults in items.)
//   - A map must have the wanted keys. An atomic map must have no other keys.
//   - A label selector must have exactly the wanted fields, so that an empty selector keeps selecting everything.
//
// If nulls are sent, null and absent differ. A map with keys of others covers a null, since server-side apply merges the two.
//
// Numbers, quantities, and raw JSON are compared by value. If an unstructured object has an explicit zero, and the API server stores it as
// absent, that is not a difference.
//
// A type without a schema is compared as the fields of a custom resource are by default: lists are atomic, and maps are not.
//
// # Hashes
//
// Clusters store hashes of what was sent. So the JSON must not change with a release of this module or of Go: the escapes and the format of
// floats stay as in the first release (tree.go).
package compare
