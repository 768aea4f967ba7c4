package memoryserver

import (
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// The values that the server generates depend on the object's kind and name, and on how many objects of that name there were before. They
// do not depend on other objects. So two runs that create the same objects in another order have the same values.

// newUID returns the UID of a new object. Like random UIDs, two UIDs differ both in their first and in their last characters, since some
// operators shorten them. n is the number of deleted objects of the same name.
func newUID(k *kind.Kind, key client.ObjectKey, n uint64) types.UID {
	hash := hashOf(k, key.String(), n)
	return types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(hash), uint16(hash>>32), mixed(hash)>>16))
}

// newUID returns the UID of a new object. In each dry run the object has another UID.
func (s *Server) newUID(k *kind.Kind, key client.ObjectKey, dryRun bool) types.UID {
	if !dryRun {
		return newUID(k, key, s.store.table(k).deletions(key))
	}
	id := generatedName{k.Storage(), key.Namespace, key.Name}
	s.dryRuns[id]++
	return newUID(k, key, ^s.dryRuns[id])
}

// suffixAlphabet has the letters of the real server. It has no vowels, so that no suffix is a word.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// suffixes generates names.
type suffixes struct {
	last    map[generatedName]uint64 // the number of the last name that was generated from each prefix
	skipped uint64                   // numbers up to this one are not used, by Advance
}

// next returns the text that is appended to generateName: five characters, as on the real server. For each prefix, all suffixes are used
// before one is repeated.
func (s *suffixes) next(k *kind.Kind, namespace, prefix string) string {
	const length, spread = 5, 7_368_787 // spread is a prime near half of 27^5, so that the suffixes of consecutive numbers look different
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

// generatedName is a name of an object, or a prefix from which names are generated.
type generatedName struct {
	kind              *kind.Kind
	namespace, prefix string
}

// hashOf returns a hash of a kind, a name and a number.
func hashOf(k *kind.Kind, name string, n uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %d", k.GVK.GroupKind(), name, n) // cannot fail
	return mixed(h.Sum64())
}

// mixed returns another hash, in which each bit depends on all bits of the first one. It is the last step of SplitMix64.
func mixed(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
