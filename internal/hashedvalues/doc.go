// Package hashedvalues keeps large Secrets and ConfigMaps small in a cache. Otherwise anybody who may write one in a watched
// namespace decides how much memory the operator needs.
//
// [Transform] puts a hash in place of each long value of a large object. Such a hashed object never leaves the cache unnoticed:
//
//   - [Reader] and [Cache] read the whole object from the API server in its place, unless the reader asks for it with [AsHashed];
//   - the engine of package ownedresources asks for it. [Restore] then replaces the hash of each desired value by the value, so that
//     an object that is as desired costs no request;
//   - the mark of a hashed object is an annotation with a key that Kubernetes does not allow. So no user can forge it, and the API server
//     refuses a hashed object that somebody took from an event and sends back.
package hashedvalues
