// Package hashedvalues keeps large Secrets and ConfigMaps small in a cache. Otherwise anybody who may write one in a watched namespace
// decides how much memory the operator needs.
//
// [Transform] replaces each long value of a large object by a hash. Such an object is called hashed. No reader takes a hash for a value:
//
//   - [Reader] and [Cache] read the whole object from the API server instead, unless the caller passes the option [AsHashed].
//   - The engine of package ownedresources passes this option. [Restore] then replaces the hash of each desired value by the value. So an
//     object that is as desired costs no request.
//   - A hashed object has an annotation with a key that Kubernetes does not allow. So no user can forge it. If somebody takes a hashed
//     object from an event and sends it back, the API server refuses it.
package hashedvalues
