package ownedresources

import (
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verified remembers in which version a live object was found to be as wanted: while neither that
// version nor what is wanted changes, there is nothing to compare. Of both it keeps a digest, which
// lives no longer than the process.
type verified struct {
	seed  maphash.Seed
	mu    sync.RWMutex
	byUID map[types.UID]uint64
}

// verdict says that a live object in this version is what its owner wants.
type verdict struct {
	version string
	owner   types.UID
	wanted  uint64
}

func newVerified() *verified {
	return &verified{seed: maphash.MakeSeed(), byUID: map[types.UID]uint64{}}
}

func (v *verified) digest(o *owner, live client.Object, encoded []byte) uint64 {
	return maphash.Comparable(v.seed, verdict{live.GetResourceVersion(), o.reference.UID, maphash.Bytes(v.seed, encoded)})
}

func (v *verified) is(o *owner, live client.Object, encoded []byte) bool {
	now := v.digest(o, live, encoded)
	v.mu.RLock()
	defer v.mu.RUnlock()
	known, ok := v.byUID[live.GetUID()]
	return ok && known == now
}

func (v *verified) set(o *owner, live client.Object, encoded []byte) {
	uid := live.GetUID()
	if uid == "" { // controller-runtime's fake client gives none
		return
	}
	now := v.digest(o, live, encoded)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byUID[uid] = now
}

// forget is for an object that is gone.
func (v *verified) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byUID, uid)
}
