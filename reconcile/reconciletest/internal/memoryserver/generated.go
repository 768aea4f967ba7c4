package memoryserver

import (
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// The values that the server generates depend on the object's kind and name, and on how many of that name there were. They do not
// depend on what else was created before, so two runs that create the same objects in another order have the same values.

// newUID returns the UID of a new object. UIDs differ in their first characters as in their last, as random ones do: some
// operators shorten them. n is how many objects of the name are gone.
func newUID(k *kind.Kind, key client.ObjectKey, n uint64) types.UID {
	hash := hashOf(k, key.String(), n)
	return types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(hash), uint16(hash>>32), mixed(hash)>>16))
}

// newUID returns the UID of a new object. The object of each dry run has a UID of its own.
func (s *Server) newUID(k *kind.Kind, key client.ObjectKey, dryRun bool) types.UID {
	if !dryRun {
		return newUID(k, key, s.store.table(k).deletions(key))
	}
	id := generatedName{k.Storage(), key.Namespace, key.Name}
	s.dryRuns[id]++
	return newUID(k, key, ^s.dryRuns[id])
}

// suffixAlphabet is the real server's. It has no vowels, so that no suffix spells a word.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// suffixes generates names.
type suffixes struct {
	last    map[generatedName]uint64 // the number of the last name
	skipped uint64                   // numbers that are not used any more, by Advance
}

// next returns what is appended to generateName: five characters, as from the real server. A prefix gets a suffix
// for the second time only after all others.
func (s *suffixes) next(k *kind.Kind, namespace, prefix string) string {
	const length, spread = 5, 7_368_787 // a prime near half of 27^5, so that neighbours look different
	id := generatedName{k.Storage(), namespace, prefix}
	s.last[id] = max(s.last[id], s.skipped) + 1
	n := hashOf(k, namespace+"/"+prefix, 0)>>16 + s.last[id]*spread
	suffix := make([]byte, length)
	for i := range suffix {
		suffix[i] = suffixAlphabet[n%uint64(len(suffixAlphabet))]
		n /= uint64(len(suffixAlphabet))
	}
	return string(suffix)
}

// generatedName is a name, or what the names have in common that are generated from one prefix.
type generatedName struct {
	kind              *kind.Kind
	namespace, prefix string
}

// hashOf returns a hash of a kind, a name and a number.
func hashOf(k *kind.Kind, name string, n uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %d", k.GVK.GroupKind(), name, n) // it returns no error
	return mixed(h.Sum64())
}

// mixed spreads each bit of a hash over all bits of another one. It is the last step of SplitMix64.
func mixed(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
