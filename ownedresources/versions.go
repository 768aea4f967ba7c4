package ownedresources

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versions counts how often resource versions went back. An API server that was restored from a backup issues versions again that
// it has issued before, for other contents, so what was remembered by a version before does not hold afterwards. It is safe for
// concurrent use. The zero value is ready to use.
type versions struct{ epoch atomic.Uint64 }

// current returns the count. It is part of what is remembered: what has another count does not hold any more.
func (v *versions) current() uint64 { return v.epoch.Load() }

// observe begins another epoch if an object, of the same UID, has an earlier version than before.
func (v *versions) observe(before, after client.Object) {
	order, err := resourceversion.CompareResourceVersion(after.GetResourceVersion(), before.GetResourceVersion())
	if err == nil && order < 0 {
		v.epoch.Add(1)
	}
}
