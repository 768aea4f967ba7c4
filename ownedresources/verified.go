package ownedresources

import (
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verified remembers in which version a live object was found to be as wanted: while neither that
// version nor what is wanted changes, there is nothing to compare.
type verified struct {
	seed  maphash.Seed
	mu    sync.RWMutex
	byUID map[types.UID]verdict
}

type verdict struct {
	version string // of the live object
	wanted  uint64 // digest of what would be sent; it lives no longer than the process
	owner   types.UID
}

func newVerified() *verified {
	return &verified{seed: maphash.MakeSeed(), byUID: map[types.UID]verdict{}}
}

func (v *verified) verdict(o *owner, live client.Object, encoded []byte) verdict {
	return verdict{version: live.GetResourceVersion(), wanted: maphash.Bytes(v.seed, encoded), owner: o.reference.UID}
}

func (v *verified) is(o *owner, live client.Object, encoded []byte) bool {
	now := v.verdict(o, live, encoded)
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
	now := v.verdict(o, live, encoded)
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
